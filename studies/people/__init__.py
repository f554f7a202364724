"""Parts of the study of real people: worlds (who is asked what), tastes (how to guess), cells (what came out)."""
