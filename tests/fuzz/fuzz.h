#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/error.h"

// A reader of input from outside must take any bytes: it either reads them or refuses them with an error for users.
// Anything else is a finding: another exception, a signal, a sanitizer's complaint, no end, or memory without bound.
//
//   KRIGTUNE_FUZZ(csv) { krigtune::parse_csv(text, "table.csv"); }
//
// stands for two things. With clang and -DKRIGTUNE_FUZZ=ON it is the program fuzz_csv, which invents inputs
// (scripts/fuzz). In every build it is the test Fuzz.csv, which reads the files of tests/golden/fuzz/csv, seeds and
// earlier findings, and makes of each of them inputs that are nested too deep to walk.

#ifdef KRIGTUNE_LIBFUZZER

#define KRIGTUNE_FUZZ(name)                                                           \
  static void read_##name(const std::string& text);                                   \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    try {                                                                             \
      read_##name(std::string(reinterpret_cast<const char*>(data), size));            \
    } catch (const krigtune::UserError&) {                                            \
    } catch (const krigtune::EnvironmentError&) {                                     \
    }                                                                                 \
    return 0;                                                                         \
  }                                                                                   \
  static void read_##name(const std::string& text)

#else

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/files.h"

namespace krigtune {

/// Returns inputs with 400,000 brackets in each other: nothing else, and in place of some of the values of `seed`.
inline std::vector<std::string> deep_inputs(const std::string& seed) {
  constexpr std::size_t kDeep = 400'000;
  constexpr int kMostPlaces = 6;
  const auto repeated = [](std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < kDeep; ++i) result += text;
    return result;
  };
  const std::string parts = repeated("a.");
  std::vector<std::string> inputs = {repeated("("), repeated("- "), parts + "a = 1", parts + "a=1", repeated("!")};
  for (const std::string& nest : {repeated("[") + repeated("]"), repeated("{\"a\":") + "1" + repeated("}")}) {
    inputs.push_back(nest);
    int places = 0;
    for (std::size_t at = seed.find_first_of(":="); at != std::string::npos && places < kMostPlaces; ++places) {
      const std::size_t begin = std::min(seed.find_first_not_of(" :=", at), seed.size());
      const std::size_t end = std::min(seed.find_first_of(",]}\n", begin), seed.size());
      inputs.push_back(seed.substr(0, begin) + nest + seed.substr(end));
      at = seed.find_first_of(":=", end);
    }
  }
  return inputs;
}

template <class Read>
void expect_read_or_refused(const std::string& text, const Read& read) {
  try {
    read(text);
  } catch (const UserError& error) {
    EXPECT_STRNE(error.what(), "");
  } catch (const EnvironmentError& error) {
    EXPECT_STRNE(error.what(), "");
  } catch (const std::exception& error) {
    ADD_FAILURE() << "no error for users: " << error.what();
  }
}

/// Reads each file of the corpus and requires that there is at least one.
template <class Read>
void read_corpus(const std::string& name, const Read& read) {
  const std::filesystem::path corpus = std::filesystem::path(KRIGTUNE_TEST_DIR) / "golden" / "fuzz" / name;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path().string());
    const std::string text = read_text(entry.path());
    expect_read_or_refused(text, read);
    for (const std::string& deep : deep_inputs(text)) expect_read_or_refused(deep, read);
    ++files;
  }
  EXPECT_GT(files, 0) << corpus;
}

}  // namespace krigtune

#define KRIGTUNE_FUZZ(name)                                       \
  static void read_##name(const std::string& text);               \
  TEST(Fuzz, name) { krigtune::read_corpus(#name, read_##name); } \
  static void read_##name(const std::string& text)

#endif
