"""Whole couples stay or go, whatever a gate refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.build.draft import Draft
from prbench.build.gates import WholeCouples, run_gates
from prbench.errors import DataError

ANSWERS = {"chosen": "Warm the pot before you pour.", "rejected": "Let someone else make it."}


def a_draft(**fields):
    return Draft.model_validate({"id": "d", "user": "ann", "question": "Tea?", **ANSWERS, **fields})


class TestCouples:
    def couple(self, tag="m", **changes):
        one = a_draft(id=f"{tag}1", tags={"mirror": tag})
        return [one, one.swapped(id=f"{tag}2", user="bob", **changes)]

    def test_whole_couples_and_single_drafts_pass(self):
        assert WholeCouples().check([*self.couple(), a_draft()]) == {}

    @pytest.mark.parametrize(
        "changes", [{"question": "Coffee?"}, {"chosen": "Other."}, {"tags": {"mirror": "m", "split": "test"}}]
    )
    def test_halves_that_are_no_images(self, changes):
        assert WholeCouples().check(self.couple(**changes)).keys() == {"m1", "m2"}

    def test_lone_halves_and_crowds(self):
        one, two = self.couple()
        assert WholeCouples().check([one]) == {"m1": "mirror tag 'm' stands on 1 draft, not on 2"}
        assert len(WholeCouples().check([one, two, two.model_copy(update={"id": "m3"})])) == 3

    @given(st.sets(st.sampled_from([f"c{n}{half}" for n in range(6) for half in "12"])))
    def test_whatever_a_gate_refuses_couples_stay_whole(self, refused):
        class Named:
            name = rule = "named"

            def check(self, drafts):
                return {draft.id: "no" for draft in drafts if draft.id in refused}

        drafts = [half for n in range(6) for half in self.couple(f"c{n}")]
        report = run_gates(drafts, [Named(), WholeCouples()])
        hit = {name[:2] for name in refused}
        assert {draft.id for draft in report.kept} == {draft.id for draft in drafts if draft.id[:2] not in hit}
        named, whole = report.counts
        assert (named.rejected, named.with_half) == (len(refused), 2 * len(hit) - len(refused))
        assert (whole.checked, whole.rejected, whole.passed) == (12 - 2 * len(hit), 0, 12 - 2 * len(hit))
        for reject in report.rejects:
            other = reject.draft.id[:2] + {"1": "2", "2": "1"}[reject.draft.id[2]]
            expected = "no" if reject.draft.id in refused else f"its mirrored half {other!r} was refused: no"
            assert reject.reason == expected

    def test_ids_must_differ(self):
        with pytest.raises(DataError, match="draft id 'd' stands more than once"):
            run_gates([a_draft(), a_draft()], [])


def test_a_gate_is_shown_drafts_in_the_order_of_their_ids():
    class OnlyTheFirst:
        name = rule = "first"

        def check(self, drafts):
            return {draft.id: "not the first" for draft in drafts[1:]}

    drafts = [a_draft(id=name) for name in "bcad"]
    for order in (drafts, drafts[::-1]):
        report = run_gates(order, [OnlyTheFirst()])
        assert [draft.id for draft in report.kept] == ["a"]
        assert [reject.draft.id for reject in report.rejects] == [draft.id for draft in order if draft.id != "a"]
