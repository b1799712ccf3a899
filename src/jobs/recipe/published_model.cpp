#include "jobs/recipe/published_model.h"

#include <algorithm>

#include "core/error.h"
#include "workload/hub_models.h"
#include "workload/model.h"

namespace krigtune::jobs {
namespace {

// Returns the directory of a hub model that has been downloaded: models--ORG--NAME/snapshots/HASH.
std::filesystem::path in_hub_cache(const std::string& name, const ModelSource& source) {
  const auto variable = [&](const char* key) { return source.variable ? source.variable(key) : std::string(); };
  std::filesystem::path cache = variable("HF_HOME");
  if (cache.empty()) cache = std::filesystem::path(variable("HOME")) / ".cache" / "huggingface";
  std::string folder = "models--" + name;
  for (std::size_t at = folder.find('/'); at != std::string::npos; at = folder.find('/')) folder.replace(at, 1, "--");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(cache / "hub" / folder / "snapshots", error)) {
    if (std::filesystem::is_regular_file(entry.path() / "config.json", error)) return entry.path();
  }
  return {};
}

}  // namespace

std::filesystem::path hf_config_of(const std::string& name, const ModelSource& source) {
  if (name.empty()) return {};
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(source.directory / name).lexically_normal();
  if (!std::filesystem::exists(path, error)) path = in_hub_cache(name, source);
  if (std::filesystem::is_directory(path, error)) path /= "config.json";
  const bool is_json = std::filesystem::is_regular_file(path, error) && path.extension() == ".json";
  return is_json ? path : std::filesystem::path();
}

Json published_model(const std::string& name, const ModelSource& source) {
  if (const std::filesystem::path file = hf_config_of(name, source); !file.empty())
    return {{"hf_config", file.string()}};
  return workload::hub_model(name) ? Json{{"preset", name}} : Json();
}

std::int64_t at_most_the_models(std::int64_t length, const Json& model) {
  if (!model.contains("preset") && !model.contains("hf_config")) return length;
  Json without = model;
  without.erase("seq_len");
  workload::Caveats ignored;
  try {
    return std::min(length, workload::read_model(without, "the command", "", {}, &ignored).seq_len);
  } catch (const UserError&) {  // whoever reads the model reports it
    return length;
  }
}

}  // namespace krigtune::jobs
