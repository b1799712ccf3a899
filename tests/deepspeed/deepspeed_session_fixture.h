#pragma once
#include <algorithm>
#include <string>

#include "core/json.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/session/deepspeed_session.h"
#include "session/session.h"
#include "words.h"

// Sessions made from a user's ds_config.json and command.
namespace krigtune::deepspeed_session_test {

inline constexpr const char* kSizes =
    "--num-layers 4 --hidden-size=256 --num_attention_heads 4 --vocab_size 1000 --seq_length 64";

inline deepspeed::DsSessionInputs inputs_of(const std::string& config, const std::string& flags = "", int ranks = 4) {
  deepspeed::DsSessionInputs inputs;
  inputs.config = deepspeed::read_ds_config(config, "ds.json");
  inputs.ds_config = "ds.json";
  inputs.directory = "/";
  inputs.machine.cluster.gpus_per_node = ranks;
  inputs.command =
      deepspeed::read_ds_command(words_of("deepspeed train.py --deepspeed --deepspeed_config ds.json " + flags));
  return inputs;
}

inline deepspeed::DsSession made(const std::string& config, const std::string& flags = "", int ranks = 4) {
  return deepspeed::deepspeed_session(inputs_of(config, flags, ranks));
}

// Reads the session as the tuner does.
inline session::Session read(const deepspeed::DsSession& session) {
  return session::read_session(session.json, "s.json", "/");
}

inline bool says(const deepspeed::DsSession& session, const std::string& text) {
  return std::any_of(session.remarks.begin(), session.remarks.end(),
                     [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

inline Json json(const char* text) { return parse_json(text, "expected"); }

}  // namespace krigtune::deepspeed_session_test
