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
// (scripts/fuzz). In every build it is the test Fuzz.csv, which reads the files of tests/golden/fuzz/csv: seeds and
// earlier findings.

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

#include <filesystem>

#include "core/files.h"

namespace krigtune {

/// Reads each file of the corpus and requires that there is at least one.
template <class Read>
void read_corpus(const std::string& name, const Read& read) {
  const std::filesystem::path corpus = std::filesystem::path(KRIGTUNE_TEST_DIR) / "golden" / "fuzz" / name;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path().string());
    const std::string text = read_text(entry.path());
    try {
      read(text);
    } catch (const UserError& error) {
      EXPECT_STRNE(error.what(), "");
    } catch (const EnvironmentError& error) {
      EXPECT_STRNE(error.what(), "");
    } catch (const std::exception& error) {
      ADD_FAILURE() << "no error for users: " << error.what();
    }
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
