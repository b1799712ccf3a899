// Choices of algorithms, kept from run to run.
#include "engine/cuda/algorithm_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace krigtune::cuda {
namespace {

class AlgorithmCaches : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("krigtune_algorithms_" + std::to_string(getpid()));
  std::filesystem::path file_ = directory_ / "matmul.json";
  AlgorithmWords one_ = {1, 0xFFFFFFFFFFFFFFFFULL, 3, 4, 5, 6, 7, 8};
  AlgorithmWords two_ = {9};
};

TEST_F(AlgorithmCaches, RememberFromRunToRun) {
  AlgorithmCache first(file_);
  EXPECT_FALSE(first.find("a"));
  first.remember("a", one_);
  EXPECT_EQ(first.find("a"), one_);
  EXPECT_EQ(AlgorithmCache(file_).find("a"), one_);
  EXPECT_FALSE(AlgorithmCache(file_).find("b"));
}

TEST_F(AlgorithmCaches, KeepWhatOthersHaveWritten) {
  AlgorithmCache first(file_), second(file_);
  first.remember("a", one_);
  second.remember("b", two_);
  EXPECT_EQ(AlgorithmCache(file_).find("a"), one_);
  EXPECT_EQ(AlgorithmCache(file_).find("b"), two_);
}

TEST_F(AlgorithmCaches, StartAnewWhereTheFileSaysNothing) {
  std::filesystem::create_directories(directory_);
  for (const char* text : {"no JSON", "{\"schema_version\": 9, \"algorithms\": {\"a\": [1,2,3,4,5,6,7,8]}}",
                           "{\"schema_version\": 2, \"algorithms\": {\"a\": [1, 2, \"x\"]}}"}) {
    std::ofstream(file_) << text;
    AlgorithmCache cache(file_);
    EXPECT_FALSE(cache.find("a")) << text;
    cache.remember("a", one_);
    EXPECT_EQ(AlgorithmCache(file_).find("a"), one_) << text;
  }
}

TEST_F(AlgorithmCaches, DoWithoutAPlace) {
  AlgorithmCache cache("");
  cache.remember("a", one_);
  EXPECT_EQ(cache.find("a"), one_);
  AlgorithmCache nowhere("/dev/null/matmul.json");
  nowhere.remember("a", one_);
  EXPECT_EQ(nowhere.find("a"), one_);
}

TEST(AlgorithmFile, IsNamedByTheGpuAndTheLibrary) {
  setenv("KRIGTUNE_CACHE", "/somewhere", 1);
  EXPECT_EQ(algorithm_file("NVIDIA H100 80GB HBM3", 130100), "/somewhere/matmul_NVIDIAH10080GBHBM3_130100.json");
}

}  // namespace
}  // namespace krigtune::cuda
