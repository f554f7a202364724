"""LOCAL: models whose weights are on this machine, `hf:` classifiers, `lm:` language models, `dpo:` and `embed:`."""
