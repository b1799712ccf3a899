#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/json.h"

// Models that a command names: by a directory, a config.json, or a name on the Hugging Face hub.
namespace krigtune::jobs {

/// Where names are looked up.
struct ModelSource {
  std::filesystem::path directory;  ///< base of relative paths
  /// Environment variable; "" if not set; null: no variable is set. HF_HOME and HOME tell where models are downloaded.
  std::function<std::string(const std::string&)> variable = {};
};

/// Returns the config.json of a model that is on this machine; empty if it is not.
std::filesystem::path hf_config_of(const std::string& name, const ModelSource& source);

/// Returns the "model" of a workload: {"hf_config": path} if the model is on this machine, {"preset": name} if krigtune
/// knows it by name, otherwise null.
Json published_model(const std::string& name, const ModelSource& source);

/// Tokens of a sequence where nobody states them: TRL's default is 1024, LLaMA-Factory's and torchtitan's 2048.
constexpr std::int64_t kUsualLength = 2048;
/// What predictions with an assumed length do not know.
constexpr const char* kRealLength = "the real length of sequences: memory and time grow with it";

/// Returns `length`, or what a published model takes at most if that is less: nobody trains on more. `model` is
/// published_model()'s, perhaps with other sizes; a model that cannot be read changes nothing.
std::int64_t at_most_the_models(std::int64_t length, const Json& model);

}  // namespace krigtune::jobs
