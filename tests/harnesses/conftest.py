"""Scripts that other environments run, with packages that are not here."""

collect_ignore = ["inspect_judge.py", "lm_eval_model.py"]
