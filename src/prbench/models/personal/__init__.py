"""Personalized reward models that are trained here: methods over vectors of a frozen encoder, and how they score.

The methods share one interface (`Method`): a state is made of what is known of a user, items are rewarded by it. Papers
and equations stand in each method's module. Importing this room loads no torch; its modules do.
"""

__all__: list[str] = []
