#pragma once
#include <string>

#include "workload/hf_keys.h"
#include "workload/model.h"

namespace krigtune::workload {

/// Returns the parameters that a family has beside those of the model as it is read otherwise, from its config.json:
/// attention sinks, gates, biases of routers and heads, scalars of an activation, norms of embeddings and within
/// branches, the head of a masked language model, attention to an encoder, and what linear attention has more than the
/// attention that is planned in its place.
OtherParameters other_parameters(const std::string& type, HfKeys& keys, const ModelSpec& model);

/// Returns whether the family is an encoder of BERT's shape: learned positions, a layer norm, an MLP with two matrices,
/// and the head of a masked language model.
bool is_bert_like(const std::string& type);

}  // namespace krigtune::workload
