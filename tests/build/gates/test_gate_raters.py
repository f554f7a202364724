"""The gates that ask models, at their lines: what is graded, what is compared, and what a missing grade comes to."""

import pytest

from gate_raters import BlindRater, CueJudge
from prbench.build.draft import Draft
from prbench.build.gates import EqualQuality, Margins, RubricMargin, TwoRaters, is_unmeasured, run_gates
from prbench.graders import Grade
from prbench.types import Aspect, Outcome

ANSWERS = {"chosen": "Warm the pot before you pour.", "rejected": "Let someone else make it."}


def a_draft(**fields):
    return Draft.model_validate({"id": "d", "user": "ann", "question": "Tea?", **ANSWERS, **fields})


class FixedJudge:
    """Gives the grades that it was handed, by answer."""

    def __init__(self, grades, refusal=None):
        self.card = CueJudge("fixed:judge").card
        self.grades, self.refusal, self.asked = grades, refusal, []

    def refuses(self, grading):
        return self.refusal

    def forecast(self, gradings):
        return 0

    def grade(self, gradings):
        self.asked += gradings
        for index, grading in enumerate(gradings):
            if grading.answer in self.grades:
                yield index, self.grades[grading.answer]


class TestRubricMargin:
    def check(self, chosen, rejected, least=1.0):
        draft = a_draft(chosen="yes", rejected="no", aspects=[Aspect(aspect="Warm")])
        judge = FixedJudge({"yes": Grade.given(chosen), "no": Grade.given(rejected)})
        return RubricMargin(Margins(judge), least).check([draft])

    @pytest.mark.parametrize(
        ("chosen", "rejected", "passes"),
        [
            ([2, 2, 1], [1, 1, 0], True),  # 5/3 − 2/3, a little above 1 as floats
            ([1, 1, 2, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1, 1], True),  # 11/7 − 4/7
            ([2, 1], [1, 0], True),
            ([2, 1], [1, 1], False),
            ([0, 0], [2, 2], False),
        ],
    )
    def test_line(self, chosen, rejected, passes):
        assert (self.check(chosen, rejected) == {}) is passes

    def test_every_margin_on_the_line_passes_whatever_the_rounding(self):
        for number in range(1, 12):
            for low in range(number + 1):
                assert self.check([1] * number + [2] * low, [0] * number + [1] * low) == {}

    def test_reason(self):
        assert self.check([2, 0], [1, 1]) == {"d": "rubric margin +0.00 < 1.00"}
        assert self.check([0, 0], [1, 2]) == {"d": "rubric margin -1.50 < 1.00"}

    @pytest.mark.parametrize("bad", ["yes", "no"])
    @pytest.mark.parametrize("grade", [Grade.invalid("no list"), Grade.failed("timed out"), None])
    def test_what_was_not_graded_is_unmeasured(self, bad, grade):
        grades = {"yes": Grade.given([2]), "no": Grade.given([0]), bad: grade}
        judge = FixedJudge({answer: found for answer, found in grades.items() if found})
        draft = a_draft(chosen="yes", rejected="no", aspects=[Aspect(aspect="Warm")])
        report = run_gates([draft], [RubricMargin(Margins(judge), 0.0)])
        assert (report.counts[0].rejected, report.counts[0].unmeasured) == (0, 1)
        assert is_unmeasured(report.rejects[0].reason)
        side = "chosen" if bad == "yes" else "rejected"
        assert f"{side}: {grade.reason if grade else 'the judge gave no grade'}" in report.rejects[0].reason

    def test_what_a_judge_refuses_is_not_sent(self):
        judge = FixedJudge({}, refusal="too long")
        draft = a_draft(aspects=[Aspect(aspect="Warm")])
        assert RubricMargin(Margins(judge)).check([draft]) == {"d": "unmeasured: chosen: too long"}
        assert RubricMargin(Margins(judge)).check([a_draft()]) == {"d": "unmeasured: chosen: the draft has no aspects"}
        assert judge.asked == []

    def test_margin_and_agreement_ask_for_each_grade_once(self):
        one, two = CueJudge("a:1"), CueJudge("b:2")
        draft = a_draft(chosen="thrift and thrift", aspects=[Aspect(aspect="Has thrift")])
        margins = Margins(one), Margins(two)
        gates = [RubricMargin(margins[0]), TwoRaters(*margins)]
        assert run_gates([draft, draft.model_copy(update={"id": "e"})], gates).kept
        assert (len(one.asked), len(two.asked)) == (2, 2)

    def test_the_judge_is_not_told_which_answer_is_which(self):
        judge = CueJudge()
        draft = a_draft(aspects=[Aspect(aspect="Has thrift")], tags={"axis": "x", "pole": "y", "side": "chosen"})
        Margins(judge).of([draft])
        assert [dict(grading.tags) for grading in judge.asked] == [{"axis": "x", "pole": "y"}] * 2


class TestTwoRaters:
    @pytest.mark.parametrize(
        ("one", "other", "reason"),
        [
            ((2, 0), (1, 0), None),
            ((2, 0), (1, 1), "margins +2.00 and +0.00: not both judges see a difference"),
            ((1, 1), (2, 0), "margins +0.00 and +2.00: not both judges see a difference"),
            ((2, 0), (0, 1), "margins +2.00 and -1.00: the judges contradict each other"),
            ((0, 2), (2, 0), "margins -2.00 and +2.00: the judges contradict each other"),
            ((0, 1), (0, 2), "margins -1.00 and -2.00: both judges prefer rejected"),
        ],
    )
    def test_signs(self, one, other, reason):
        judges = [FixedJudge({"yes": Grade.given([yes]), "no": Grade.given([no])}) for yes, no in (one, other)]
        draft = a_draft(chosen="yes", rejected="no", aspects=[Aspect(aspect="Warm")])
        found = TwoRaters(*map(Margins, judges)).check([draft])
        assert found == ({"d": reason} if reason else {})

    @pytest.mark.parametrize("order", [1, -1])
    def test_one_judge_without_a_grade_is_unmeasured(self, order):
        judges = [CueJudge(), FixedJudge({})][::order]
        draft = a_draft(chosen="thrift", aspects=[Aspect(aspect="Has thrift")])
        assert is_unmeasured(TwoRaters(*map(Margins, judges)).check([draft])["d"])


class FixedRater(BlindRater):
    """Replies with the three numbers that stand in the answer."""

    def _reply(self, answer):
        return Outcome(status="ok", raw="Factuality: {}\nRelevance: {}\nHelpfulness: {}".format(*answer))


class TestEqualQuality:
    @pytest.mark.parametrize(
        ("chosen", "rejected", "reason"),
        [
            ("8 8 8", "6 10 8", None),
            ("8 8 8", "5 8 8", "factuality 8 and 5"),
            ("5 8 8", "8 8 8", "factuality 5 and 8"),
            ("8 8 8", "8 5 8", "relevance 8 and 5"),
            ("8 7 8", "8 8 5", "helpfulness 8 and 5"),
            ("9 9 9", "1 9 2", "factuality 9 and 1, helpfulness 9 and 2"),
        ],
    )
    def test_line(self, chosen, rejected, reason):
        found = EqualQuality(FixedRater(), 2.0).check([a_draft(chosen=chosen, rejected=rejected)])
        assert found == ({"d": f"chosen and rejected differ by more than 2: {reason}"} if reason else {})

    def test_decimals_on_the_line_pass_whatever_the_rounding(self):
        class Decimal(BlindRater):
            def _reply(self, answer):
                return Outcome(status="ok", raw=f"Factuality: {answer[0]}.3\nRelevance: 5\nHelpfulness: 5")

        assert EqualQuality(Decimal(), 2.0).check([a_draft(chosen="8", rejected="6")]) == {}  # 8.3 − 6.3 > 2 in floats
        assert EqualQuality(Decimal(), 2.0).check([a_draft(chosen="8", rejected="5")]) != {}

    def test_off_the_scale_is_unmeasured(self):
        found = EqualQuality(FixedRater()).check([a_draft(chosen="8 8 8", rejected="8 8 11")])
        assert found == {"d": "unmeasured: rejected: helpfulness: the rating 11 is not between 1 and 10"}

    def test_couples_share_their_ratings(self):
        one = a_draft(chosen="8 8 8", rejected="7 7 7")
        rater = FixedRater()
        assert EqualQuality(rater).check([one, one.swapped(id="e", user="bob")]) == {}
        assert len(rater.shown) == 2

    def test_a_rater_that_says_nothing(self):
        class Mute(BlindRater):
            def generate(self, prompts, **settings):
                return iter(())

        assert EqualQuality(Mute()).check([a_draft()]) == {"d": "unmeasured: chosen: the rater gave no reply"}
