#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace krigtune::cuda {

/// The algorithm of a matrix product: the words of the library's cublasLtMatmulAlgo_t.
using AlgorithmWords = std::array<std::uint64_t, 8>;

/// Keeps from run to run which algorithm was fastest for a product, because trying takes time and another algorithm
/// gives other bits. There is one file for each GPU model and version of the library. If it cannot be read or written,
/// algorithms are tried again.
class AlgorithmCache {
 public:
  /// With an empty path nothing is kept.
  explicit AlgorithmCache(std::filesystem::path file);

  std::optional<AlgorithmWords> find(const std::string& product) const;
  /// Writes the file, including what other processes have written to it meanwhile.
  void remember(const std::string& product, const AlgorithmWords& algorithm);

 private:
  std::filesystem::path file_;
  std::map<std::string, AlgorithmWords> known_;
};

/// Returns the file in this user's cache directory: "matmul_<gpu>_<version>.json", with the letters and digits of the
/// GPU's name only. Empty if there is no such directory or the version is 0.
std::filesystem::path algorithm_file(const std::string& gpu, std::size_t library_version);

}  // namespace krigtune::cuda
