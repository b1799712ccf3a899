#include "engine/cuda/algorithm_cache.h"

#include <fmt/format.h>

#include <cctype>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"

namespace krigtune::cuda {
namespace {

constexpr int kSchemaVersion = 2;  // 1: eight algorithms were tried, without epilogues

std::optional<AlgorithmWords> words_from(const Json& json) {
  AlgorithmWords words{};
  if (!json.is_array() || json.size() != words.size()) return std::nullopt;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!json[i].is_number_unsigned()) return std::nullopt;
    words[i] = json[i].get<std::uint64_t>();
  }
  return words;
}

std::map<std::string, AlgorithmWords> read(const std::filesystem::path& file) {
  std::map<std::string, AlgorithmWords> known;
  if (file.empty() || !std::filesystem::exists(file)) return known;
  try {
    const Json json = load_json(file);
    if (json.value("schema_version", 0) != kSchemaVersion) return known;
    for (const auto& [product, words] : json.at("algorithms").items()) {
      if (const auto algorithm = words_from(words)) known[product] = *algorithm;
    }
  } catch (const std::exception&) {
    known.clear();  // the file will be written again
  }
  return known;
}

}  // namespace

AlgorithmCache::AlgorithmCache(std::filesystem::path file) : file_(std::move(file)), known_(read(file_)) {}

std::optional<AlgorithmWords> AlgorithmCache::find(const std::string& product) const {
  const auto found = known_.find(product);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void AlgorithmCache::remember(const std::string& product, const AlgorithmWords& algorithm) {
  known_[product] = algorithm;
  if (file_.empty()) return;
  known_.merge(read(file_));
  Json algorithms = Json::object();
  for (const auto& [name, words] : known_) algorithms[name] = words;
  try {
    make_writable_directory(file_.parent_path());
    write_atomically(file_, Json({{"schema_version", kSchemaVersion}, {"algorithms", algorithms}}).dump(1) + "\n");
  } catch (const std::exception&) {
    file_.clear();  // there is no place to keep algorithms
  }
}

std::filesystem::path algorithm_file(const std::string& gpu, std::size_t library_version) {
  const std::filesystem::path directory = cache_directory();
  if (directory.empty() || library_version == 0) return {};
  std::string name;
  for (const char c : gpu) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return directory / fmt::format("matmul_{}_{}.json", name, library_version);
}

}  // namespace krigtune::cuda
