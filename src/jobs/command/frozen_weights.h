#pragma once
#include <string>

#include "jobs/command/command.h"

namespace krigtune::jobs {

/// Returns the words with which the script is told to train adapters (LoRA and the like) or quantised weights, as
/// "--finetuning_type lora"; "" if there are none. Such a job has states of optimizer and gradients for a small part of
/// its weights, so a plan of full training is far too large. The flags are those of transformers' examples, PEFT, TRL,
/// LLaMA-Factory, ms-swift, FastChat, LLaVA, QLoRA and DeepSpeed-Chat.
std::string frozen_weights(const Command& command);

}  // namespace krigtune::jobs
