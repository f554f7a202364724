"""prbench: does a reward model know what this user wants?"""
