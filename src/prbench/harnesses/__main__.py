"""Print the folder of the lm-eval tasks: `lm_eval --include_path "$(python -m prbench.harnesses)"`."""

from importlib.resources import files

if __name__ == "__main__":
    print(files("prbench.harnesses") / "lm_eval")
