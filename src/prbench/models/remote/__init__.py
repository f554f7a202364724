"""REMOTE: models that a server runs. `chat:` judges and raters, `http:` reward models, also on a vLLM server."""
