"""Modelling code as checkpoints bring it along: four tiny reward models, each called in another way.

The tests copy this file beside the weights, so that it is loaded as a checkpoint's own code.
"""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import BertConfig, BertModel, BertPreTrainedModel, LlamaConfig, LlamaModel, LlamaPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import ModelOutput


class OwnConfig(LlamaConfig):
    """A kind of model that transformers does not know."""

    model_type = "tiny_own_reward"


class MethodRewardModel(LlamaPreTrainedModel):
    """Tokenises for itself and adds a token of its own, at which the value is read."""

    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.v_head = nn.Linear(config.hidden_size, 1, bias=False)
        self.post_init()

    def get_score(self, tokenizer, conversation):
        text = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=False)
        ids = [*tokenizer.encode(text, add_special_tokens=False), self.config.reward_token_id]
        with torch.inference_mode():
            states = self.model(input_ids=torch.tensor([ids])).last_hidden_state
            return self.v_head(states[:, -1]).item()


class BatchMethodRewardModel(MethodRewardModel):
    """Also scores a list, as it should."""

    def get_scores(self, tokenizer, conversations):
        return [self.get_score(tokenizer, conversation) for conversation in conversations]


class BrokenBatchRewardModel(MethodRewardModel):
    """Scores a list otherwise than one by one."""

    def get_scores(self, tokenizer, conversations):
        return [self.get_score(tokenizer, conversation) + index for index, conversation in enumerate(conversations)]


@dataclass
class GatedOutput(ModelOutput):
    rewards: torch.Tensor | None = None
    gating_output: torch.Tensor | None = None
    score: torch.Tensor | None = None
    logits: torch.Tensor | None = None


class GatedRewardModel(LlamaPreTrainedModel):
    """Several objectives, weighted by a gate that reads the prompt: up to the end of the user's turn."""

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.objectives = nn.Linear(config.hidden_size, 3, bias=False)
        self.gate = nn.Linear(config.hidden_size, 3, bias=False)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        rows = torch.arange(len(input_ids))
        last = attention_mask.sum(-1) - 1
        turn = (input_ids == self.config.eos_token_id).int().argmax(-1)
        rewards = self.objectives(states[rows, last])
        weights = self.gate(states[rows, turn]).softmax(-1)
        score = (rewards * weights).sum(-1)
        return GatedOutput(rewards=rewards, gating_output=weights, score=score, logits=score[:, None])


class DistributionRewardModel(LlamaPreTrainedModel):
    """Gives a distribution for each of two attributes, and their weighted means as one logit."""

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.values = nn.Linear(config.hidden_size, 4, bias=False)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        # Reads the last position whatever stands there: padding changes the score.
        mean, _ = self.values(states[:, -1]).chunk(2, dim=-1)
        return SequenceClassifierOutput(logits=(mean * torch.tensor([0.7, 0.3])).sum(-1, keepdim=True))


class StepRewardModel(LlamaPreTrainedModel):
    """Scores every token."""

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.values = nn.Linear(config.hidden_size, 2, bias=False)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        return SequenceClassifierOutput(logits=self.values(self.model(input_ids=input_ids).last_hidden_state))


class PairRanker(BertPreTrainedModel):
    """Reads question and both answers, and compares their states at the marker tokens."""

    config_class = BertConfig

    def __init__(self, config):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = nn.Linear(2 * config.hidden_size, 1)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        states = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        source, first, second = (
            states[input_ids == marker]
            for marker in (self.config.source_prefix_id, self.config.cand1_prefix_id, self.config.cand2_prefix_id)
        )
        left, right = (self.head(torch.cat([source, part], dim=-1)) for part in (first, second))
        return SequenceClassifierOutput(logits=left - right)
