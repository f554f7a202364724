"""Each gate that needs no model, at its line: one step on either side, both answers, both directions."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate_world import Scribe
from prbench.build.draft import Draft
from prbench.build.gates import LengthRatio, NearDuplicates, ProfileLeakage, RubricCopying, SameLanguage, run_gates
from prbench.build.gates.details import details
from prbench.texts import Shingles, near_duplicates, words
from prbench.types import Aspect, Post

ANSWERS = {"chosen": "Warm the pot before you pour.", "rejected": "Let someone else make it."}


def a_draft(**fields):
    return Draft.model_validate({"id": "d", "user": "ann", "question": "Tea?", **ANSWERS, **fields})


def both_ways(draft):
    return [draft, draft.swapped()]


def count(n, start=0):
    """So many words that occur nowhere else."""
    return " ".join(f"w{start + number}x" for number in range(n))


class TestLengthRatio:
    @pytest.mark.parametrize(
        ("longer", "shorter", "most", "passes"),
        [
            (15, 10, 1.5, True),
            (16, 10, 1.5, False),
            (10, 10, 1.0, True),
            (11, 10, 1.0, False),
            (12, 10, 1.2, True),
            (57, 50, 1.14, True),  # 1.14 × 50 is a little less than 57 in floats
            (58, 50, 1.14, False),
        ],
    )
    def test_line(self, longer, shorter, most, passes):
        draft = a_draft(chosen=count(longer), rejected=count(shorter, 100))
        for one in both_ways(draft):
            assert (LengthRatio(most).check([one]) == {}) is passes

    def test_reason_holds_the_measured_value_and_the_line(self):
        draft = a_draft(chosen=count(10), rejected=count(18))
        assert LengthRatio(1.5).check([draft]) == {"d": "chosen has 10 words, rejected 18: ratio 1.80 > 1.50"}

    def test_an_answer_without_words_never_passes(self):
        for one in both_ways(a_draft(chosen="…", rejected="👍")):
            assert "without words" in LengthRatio(100).check([one])["d"]

    def test_a_script_without_spaces_is_counted_by_character(self):
        draft = a_draft(chosen="温杯之后再倒茶", rejected="让别人去泡茶")
        assert LengthRatio(1.2).check([draft]) == {}
        assert LengthRatio(1.1).check([draft]) == {"d": "chosen has 7 words, rejected 6: ratio 1.17 > 1.10"}


class TestRubricCopying:
    def draft(self, answer, **fields):
        aspects = [Aspect(aspect="Warm every cup with care and patience first", reason=f"As said: {count(9)}.")]
        return a_draft(aspects=aspects, rejected=answer, **fields)

    @pytest.mark.parametrize(
        ("answer", "passes"),
        [
            ("Please warm every cup with care.", True),  # five words
            ("Please warm every cup with care and so on.", False),  # six
            ("Please WARM every cup, with care: and so on.", False),  # case and punctuation do not count
            (f"Well, {count(5)} so.", True),
            (f"Well, {count(6)} so.", False),
            (f"Well, {count(3)} and {count(6, 3)} so.", False),
            (f"Well, {count(3)} and {count(3, 3)} so.", True),
        ],
    )
    def test_line(self, answer, passes):
        for one in both_ways(self.draft(answer)):
            assert (RubricCopying(6).check([one]) == {}) is passes

    def test_reason_names_side_place_and_length(self):
        draft = self.draft("One should warm every cup with care and patience.")
        reason = "rejected repeats 7 words of aspect 1 in a row (6 are a copy): “warm every cup with care and patience”"
        assert RubricCopying().check([draft]) == {"d": reason}
        assert RubricCopying().check([draft.swapped()])["d"].startswith("chosen repeats 7 words of aspect 1 ")

    @pytest.mark.parametrize(("title", "passes"), [("Warm the pot", True), ("Warm the pot before", False)])
    def test_a_whole_title_is_a_copy_from_four_words(self, title, passes):
        assert (RubricCopying(6).check([a_draft(aspects=[Aspect(aspect=title)])]) == {}) is passes

    def test_the_words_of_the_question_are_no_copy_but_what_follows_is(self):
        asked = "Should I warm every cup with care and patience?"
        taken_up = self.draft("Yes, warm every cup with care and patience.", question=asked)
        assert RubricCopying(6).check([taken_up]) == {}
        beyond = self.draft("Yes, warm every cup with care and patience first.", question=asked)
        assert RubricCopying(6).check([beyond])["d"].startswith("rejected repeats 8 words")

    def test_a_copy_in_the_question_does_not_hide_another(self):
        asked = "Should I warm every cup with care and patience?"
        draft = self.draft(f"Warm every cup with care and patience. {count(7)}", question=asked)
        assert "reason of aspect 1" in RubricCopying(6).check([draft])["d"]


class TestProfileLeakage:
    POST = "Since the flood we keep our grand piano upstairs in the bathroom."

    def draft(self, answer, **fields):
        profile = [Post(id="p0", text="Nothing here."), Post(id="p1", text=self.POST)]
        return a_draft(**{"profile": profile, "rejected": answer, **fields})

    @pytest.mark.parametrize(
        ("answer", "passes"),
        [
            ("Some keep our grand piano upstairs in the attic.", True),  # seven words
            ("Some we keep our grand piano upstairs in the attic.", False),  # eight
            ("Piano, bathroom, flood: a grand mess upstairs!", True),
        ],
    )
    def test_line(self, answer, passes):
        for one in both_ways(self.draft(answer)):
            assert (ProfileLeakage(8).check([one]) == {}) is passes

    def test_reason_names_the_post_and_the_length(self):
        draft = self.draft("As the flood we keep our grand piano upstairs in the bathroom.")
        said = "“the flood we keep our grand piano upstairs in the bathroom”"
        assert ProfileLeakage(8).check([draft]) == {
            "d": f"rejected repeats 11 words of post 'p1' in a row (8 are a copy): {said}"
        }

    def test_the_narrative_is_the_users_own_words_too(self):
        draft = self.draft(self.POST, profile=[], narrative=self.POST)
        assert "of the narrative in a row" in ProfileLeakage().check([draft])["d"]

    def test_a_whole_short_answer_that_stands_in_a_post(self):
        assert "the whole answer" in ProfileLeakage(8).check([self.draft("Keep our grand piano.")])["d"]
        assert ProfileLeakage(8).check([self.draft("Our grand piano.")]) == {}

    def test_every_user_is_held_against_their_own_posts_only(self):
        mine = self.draft(self.POST, profile=[Post(id="q", text="I do not own a piano.")])
        assert ProfileLeakage().check([mine]) == {}
        assert ProfileLeakage().check([mine, self.draft(self.POST, id="theirs")]).keys() == {"theirs"}

    @pytest.mark.parametrize(
        ("post", "found"),
        [
            ("My eldest daughter Milena bakes.", ["Milena"]),
            ("our dog Rex and my sister, Anna Berg, say hello", ["Rex", "Anna Berg"]),
            ("We have a dog called Rex, and my cat named Mia hides from our old dog Bo Rex", ["Rex", "Mia"]),
            ("My name is Olu and I live in Lagos.", ["Olu"]),
            ("Write to a.b+c@mail.example.org.", ["a.b+c@mail.example.org"]),
            ("See https://example.org/me/cv.pdf, or ask @olu_bakes!", ["https://example.org/me/cv.pdf", "@olu_bakes"]),
            ("Call +49 (0)30 123-4567 now", ["+49 (0)30 123-4567"]),
            ("In 2024 I walked 10,000 steps and counted 1 000 000 stars.", []),
            (
                "I told my boss, Monday is off. My sister May be late. Call me ASAP, my friend. In March my son March",
                [],
            ),
            ("My aunt Éva has a cat named Łatka", ["Éva", "Łatka"]),
            ("At six it called Uncle, and my friend Dad came", []),
            ("My daughter bakes. The Eiffel Tower is in Paris. I am German.", []),
        ],
    )
    def test_details(self, post, found):
        assert details(post) == found

    def test_a_detail_of_a_post_may_only_come_from_the_question(self):
        profile = [Post(id="p", text="My son Anton is seven, call 030 555 12 34.")]
        told = self.draft("Let Anton stir.", profile=profile)
        assert ProfileLeakage().check([told]) == {"d": "rejected repeats a personal detail of post 'p': 'Anton'"}
        assert ProfileLeakage().check([told.model_copy(update={"question": "Can Anton stir?"})]) == {}
        assert ProfileLeakage().check([self.draft("Let Antonia stir.", profile=profile)]) == {}
        called = self.draft("Dial 0305551234 at once.", profile=profile)
        assert "030 555 12 34" in ProfileLeakage().check([called])["d"]

    def test_accents_and_vowel_signs_neither_hide_a_copy_nor_make_one(self):
        composed = "Né à Orléans, j'élève des ânes près du café fermé."
        taken = unicodedata.normalize("NFD", composed)
        copied = self.draft(taken, profile=[Post(id="p", text=composed)])
        assert "words of post" in ProfileLeakage(8).check([copied])["d"]
        hindi = "मुझे हिन्दी में लिखना बहुत अच्छा लगता है"
        few = "आप हिन्दी में लिखना सीखें और रोज़ पढ़ें"  # three words of the post, in eight pieces for \w
        assert ProfileLeakage(8).check([self.draft(few, profile=[Post(id="p", text=hindi)])]) == {}
        assert ProfileLeakage(8).check([self.draft(hindi, profile=[Post(id="p", text=hindi)])]) != {}

    def test_numbers_and_addresses_are_told_apart(self):
        profile = [Post(id="p", text="My dog Rex. Call 030 555 12 34, or see www.rex.example/0305551234.")]
        assert ProfileLeakage().check([self.draft("Prexy tales, 030 555 12 35.", profile=profile)]) == {}
        assert "'030 555 12 34'" in ProfileLeakage().check([self.draft("On 030/555-1234 so.", profile=profile)])["d"]
        assert "'Rex'" in ProfileLeakage().check([self.draft("Ask Rex.", profile=profile)])["d"]

    def test_thousands_of_details_are_not_searched_one_pattern_at_a_time(self, monkeypatch):
        compiled = []
        monkeypatch.setattr(re, "escape", lambda text: compiled.append(text) or text)
        profile = [Post(id=f"p{n}", text=f"Write to me{n}@example.org.") for n in range(3000)]
        assert ProfileLeakage().check([self.draft("Write to me7@example.com.", profile=profile)]) == {}
        assert compiled == []


class TestNearDuplicates:
    def similar(self, shared, own):
        """Two texts with `shared` 5-grams in common and `own` more in each."""
        body = count(shared + 4)
        return f"{body} {count(own, 1000)}", f"{body} {count(own, 2000)}"

    @pytest.mark.parametrize(("shared", "own", "passes"), [(20, 10, False), (19, 10, True), (40, 19, False)])
    def test_line_within_a_draft(self, shared, own, passes):
        one, other = self.similar(shared, own)  # similarity: shared ÷ (shared + 2 × own)
        for draft in both_ways(a_draft(chosen=one, rejected=other)):
            assert (NearDuplicates(0.5).check([draft]) == {}) is passes

    @pytest.mark.parametrize(("shared", "passes"), [(20, False), (19, True)])
    def test_line_between_drafts(self, shared, passes):
        one, other = self.similar(shared, 10)
        first = a_draft(id="1", chosen=one, rejected=count(9, 5000))
        later = a_draft(id="2", chosen=count(9, 6000), rejected=other, user="bob", question="Coffee?")
        refused = NearDuplicates(0.5).check([later, first])
        assert (refused == {}) is passes
        assert passes or refused == {"2": "rejected is nearly the chosen answer of '1': similarity 0.50 ≥ 0.50"}

    def test_a_threshold_that_floats_miss_finds_a_text_inside_another(self):
        inside, around = count(11, 50), f"{count(43)} {count(11, 50)}"  # 7 of 50 5-grams: 0.14 × 50 > 7 in floats
        frequent = [f"{count(11, 50)} {count(80, 1000 * n)}" for n in range(1, 4)]  # makes the shared ones less rare
        found = near_duplicates([inside, around, *frequent], 0.14, Shingles())
        assert [(near.first, near.second, near.similarity) for near in found] == [(0, 1, 0.14)]

    def test_equal_answers_without_words(self):
        assert "similarity 1.00" in NearDuplicates().check([a_draft(chosen="👍", rejected="👍")])["d"]

    def test_halves_of_a_couple_are_not_duplicates_but_another_couple_is(self):
        one = a_draft(id="a1", tags={"mirror": "a"})
        couple = [one, one.swapped(id="a2", user="bob")]
        again = [half.model_copy(update={"id": f"b{n}", "tags": {"mirror": "b"}}) for n, half in enumerate(couple)]
        assert NearDuplicates().check(couple) == {}
        report = run_gates(couple + again, [NearDuplicates()])
        assert [draft.id for draft in report.kept] == ["a1", "a2"]
        assert (report.counts[0].rejected, report.counts[0].with_half) == (1, 1)

    def test_of_a_large_heap_exactly_one_stays(self):
        heap = [a_draft(id=f"{n:03}", chosen=f"{count(40)} {n}", rejected=count(30, 100 + 100 * n)) for n in range(250)]
        assert set(NearDuplicates().check(heap)) == {f"{n:03}" for n in range(1, 250)}

    def test_what_is_like_a_refused_draft_only_is_kept(self):
        a, b, c = count(30), f"{count(30)} {count(10, 100)}", f"{count(13, 17)} {count(10, 100)} {count(9, 200)}"
        drafts = [a_draft(id=name, chosen=text, rejected=f"{name} {count(30, 1000 * n)}") for n, (name, text) in
                  enumerate(zip("abc", (a, b, c), strict=True), start=1)]  # fmt: skip
        assert set(NearDuplicates(0.4).check(drafts)) == {"b"}
        assert set(NearDuplicates(0.4).check(drafts[1:])) == {"c"}


class TestSameLanguage:
    ENGLISH = "You should warm the pot before it is filled, because the tea will stay hot for longer."
    GERMAN = "Man sollte die Kanne vorher wärmen, weil der Tee dann länger nicht kalt wird."

    @pytest.mark.parametrize(
        ("question", "chosen", "rejected", "reason"),
        [
            ("Tea?", ENGLISH, ENGLISH, None),
            ("Tea?", GERMAN, GERMAN, None),
            ("How do I make the tea?", GERMAN, GERMAN, "question en, chosen de, rejected de: not one language"),
            ("Tea?", ENGLISH, GERMAN, "chosen en, rejected de: not one language"),
            ("Tea?", f"{ENGLISH} {GERMAN}", ENGLISH, "chosen mixes en and de: 48% is not en > 25%"),
            ("Tea?", f"{ENGLISH} {ENGLISH} {ENGLISH} {GERMAN}", ENGLISH, None),
            ("Tea?", f"{ENGLISH} {ENGLISH} {GERMAN}", ENGLISH, "chosen mixes en and de: 31% is not en > 25%"),
            ("Tea?", "Kettle lantern.", ENGLISH, "unmeasured: the language of chosen cannot be told (2 words)"),
        ],
    )
    def test_line(self, question, chosen, rejected, reason):
        found = SameLanguage(0.25).check([a_draft(question=question, chosen=chosen, rejected=rejected)])
        assert found == ({"d": reason} if reason else {})

    def test_a_share_on_the_line_passes_whatever_the_rounding(self, monkeypatch):
        monkeypatch.setattr("prbench.build.gates.language.language_shares", lambda text: {"en": 0.7, "de": 0.3})
        assert SameLanguage(0.3).check([a_draft()]) == {}  # 1 − 0.7 > 0.3 in floats
        assert SameLanguage(0.29).check([a_draft()]) != {}

    def test_rejected_is_looked_at_like_chosen(self):
        draft = a_draft(chosen=self.ENGLISH, rejected=f"{self.ENGLISH} {self.GERMAN}")
        assert SameLanguage(0.25).check([draft])["d"].startswith("rejected mixes")
        assert SameLanguage(0.5).check([draft]) == {}


@given(st.integers(0, 1000), st.integers(5, 80))
def test_the_scribe_writes_exactly_so_many_words(seed, length):
    assert len(words(Scribe(seed).prose(length))) == length
