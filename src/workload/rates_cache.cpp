#include "workload/rates_cache.h"

#include <fmt/format.h>

#include <regex>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json.h"

namespace krigtune::workload {
namespace {

constexpr const char* kGpu = "gpu";

Json key_json(const GpuKey& key) { return {{"name", key.name}, {"driver", key.driver}, {"ranks", key.ranks}}; }

std::filesystem::path rates_file(const std::filesystem::path& cache, const GpuKey& key) {
  const std::string text = key_json(key).dump();
  Fnv1a64 hash;
  hash.add(text.data(), text.size());
  return cache / fmt::format("gpu-{}.json", hash.hex());
}

}  // namespace

std::string driver_version(int cuda_version, const std::filesystem::path& root) {
  const std::filesystem::path file = root / "proc/driver/nvidia/version";
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build ..."
    const std::string text = read_text(file);
    std::smatch found;
    if (std::regex_search(text, found, std::regex(R"(Kernel Module.*?\s([0-9]+\.[0-9]+(\.[0-9]+)?)\s)"))) {
      return found[1];
    }
  }
  return fmt::format("CUDA {}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
}

std::optional<KeptRates> kept_rates(const std::filesystem::path& cache, const GpuKey& key) {
  if (cache.empty()) return std::nullopt;
  const std::filesystem::path file = rates_file(cache, key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  try {
    const Json json = load_json(file);
    if (json.value(kGpu, Json()) != key_json(key)) return std::nullopt;
    return KeptRates{read_measured_rates(json.value("rates", Json()), file.string()), json.value("measured_at", "")};
  } catch (const UserError&) {  // of another version, or half a file: it is written anew
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void keep_rates(const std::filesystem::path& cache, const GpuKey& key, const KeptRates& kept) {
  make_writable_directory(cache);
  const Json json = {{kGpu, key_json(key)}, {"measured_at", kept.measured_at}, {"rates", to_json(kept.rates)}};
  write_atomically(rates_file(cache, key), json.dump(2) + "\n");
}

}  // namespace krigtune::workload
