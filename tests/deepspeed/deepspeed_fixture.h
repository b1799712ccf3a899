#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/json.h"
#include "deepspeed/job/ds_config.h"
#include "user_error.h"

namespace krigtune {

inline constexpr const char* kSource = "ds_config.json";

inline Json read(const std::string& text) { return deepspeed::read_ds_config(text, kSource); }

constexpr std::int64_t operator""_n(unsigned long long number) { return static_cast<std::int64_t>(number); }

struct Refused {
  const char* text;
  const char* place;
  const char* fix;
};

/// Each case is refused with one line that names the file, the place in it and the fix.
inline void expect_refused(const std::vector<Refused>& cases, std::string (*error)(const std::string&)) {
  for (const Refused& one : cases) {
    const std::string line = error(one.text);
    EXPECT_NE(line.find(kSource), std::string::npos) << one.text << " -> " << line;
    EXPECT_NE(line.find(one.place), std::string::npos) << one.text << " -> " << line;
    EXPECT_NE(line.find(one.fix), std::string::npos) << one.text << " -> " << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

}  // namespace krigtune
