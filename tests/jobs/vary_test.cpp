// What --vary accepts, and how it refuses everything else.
#include "jobs/session/vary.h"

#include <gtest/gtest.h>

#include "user_error.h"

namespace krigtune::vary_test {

using jobs::VaryPlace;

TEST(VaryValues, AreListsAndRangesOfASession) {
  const std::vector<std::pair<const char*, const char*>> table = {
      {"1,2,4", "[1,2,4]"},
      {"1e-4, 3e-4", "[0.0001,0.0003]"},
      {"1..8", R"({"min":1,"max":8})"},
      {"-2..2", R"({"min":-2,"max":2})"},
      {"1..64:log2", R"({"min":1,"max":64,"scale":"log2"})"},
      {"1e-5..1e-2:log", R"({"type":"real","min":1e-05,"max":0.01,"scale":"log"})"},
      {"0.1..0.9", R"({"type":"real","min":0.1,"max":0.9})"},
      {"0..1.5", R"({"type":"real","min":0.0,"max":1.5})"},
      {"16..64:log", R"({"min":16,"max":64,"scale":"log","steps":5})"},
      {"a,b,c", R"(["a","b","c"])"},
      {"true,false", "[true,false]"},
      {"True,False", R"(["True","False"])"},
      {"none,2,4", R"(["none","2","4"])"},
      {"adam", R"(["adam"])"},
      {"a..b", R"(["a..b"])"},
      {"[1,2, 4]", "[1,2,4]"},
      {"[1],[2]", R"(["[1]","[2]"])"},
      {"0-3,4-7", R"(["0-3","4-7"])"},
      {"1e-5", "[1e-05]"},
  };
  for (const auto& [text, json] : table) EXPECT_EQ(jobs::read_values(text, "x").dump(), json) << text;
  EXPECT_EQ(user_error_of([] { jobs::read_values("1-8", "--vary 'n=-n:1-8'"); }),
            "--vary 'n=-n:1-8': '1-8' is a text and not a range; write 1..8");
}

TEST(VaryPlaces, AreFlagsOverridesVariablesAndKeys) {
  struct Row {
    const char* text;
    const char* name;
    VaryPlace::Is is;
    const char* place;
    const char* file;
  };
  const std::vector<Row> table = {
      {"micro_batch=--mbs:1,2", "micro_batch", VaryPlace::Is::kFlag, "--mbs", ""},
      {"b=-b:1,2", "b", VaryPlace::Is::kFlag, "-b", ""},
      {"lr=train.lr=:1e-5..1e-2:log", "lr", VaryPlace::Is::kOverride, "train.lr", ""},
      {"workers=$NUM_WORKERS:0..8", "workers", VaryPlace::Is::kVariable, "NUM_WORKERS", ""},
      {"seq=conf/train.yaml#data.seq_len:512,1024", "seq", VaryPlace::Is::kFileKey, "data.seq_len", "conf/train.yaml"},
      {"seq=C:x.toml#+data.seq_len:512", "seq", VaryPlace::Is::kFileKey, "+data.seq_len", "C:x.toml"},
  };
  for (const Row& row : table) {
    const jobs::Vary vary = jobs::read_vary(row.text);
    EXPECT_EQ(vary.name, row.name) << row.text;
    EXPECT_EQ(vary.place.is, row.is) << row.text;
    EXPECT_EQ(vary.place.name, row.place) << row.text;
    EXPECT_EQ(vary.place.file, row.file) << row.text;
  }
  EXPECT_FALSE(jobs::read_vary("x=--mbs:1").place.is_joined);
  EXPECT_TRUE(jobs::read_vary("x=--mbs=:1").place.is_joined);
  EXPECT_TRUE(jobs::read_vary("x=--mbs").values.is_null());
}

// Each case with a part of the message, which begins with the option's text.
TEST(VaryTexts, ThatAreWrongSayWhatToWrite) {
  const std::vector<std::pair<const char*, const char*>> table = {
      {"", "write NAME=FLAG:VALUES"},
      {"mbs", "write NAME=FLAG:VALUES"},
      {"--mbs:1,2,4", "write 'micro_batch=--mbs:1,2,4'"},
      {"$WORKERS:1,2,4", "write 'workers=$WORKERS:1,2,4'"},
      {"a.yaml#train.lr:1,2", "write 'lr=a.yaml#train.lr:1,2'"},
      {"2x=--mbs:1", "'2x' is not the name of a parameter"},
      {"a-b=--mbs:1", "'a-b' is not the name of a parameter"},
      {"dp=--mbs:1", "'dp' already means something in a session"},
      {"port=--port:1", "'port' already means something in a session"},
      {"x=:1,2", "FLAG is missing"},
      {"x=mbs:1,2", "'mbs' is neither a flag nor a key; write --flag, key="},
      {"x=--:1,2", "'--' is not a flag"},
      {"x=--mbs=4:1,2", "'--mbs=4' is not a flag; write it as in the command, without its value"},
      {"x=$2:1,2", "'$2' is not an environment variable"},
      {"x=#key:1,2", "'#key' is not a key of a file"},
      {"x=a.yaml#:1,2", "'a.yaml#' is not a key of a file"},
      {"x=--mbs:", "VALUES are missing; write 1,2,4"},
      {"x=--mbs:1,,2", "an empty value in '1,,2'"},
      {"x=--mbs:1,2,2.0", "duplicate value 2"},
      {"x=--mbs:8..1", "'8..1' is empty"},
      {"x=--mbs:1..1", "'1..1' is empty"},
      {"x=--mbs:1..b", "'1..b' is not a range of numbers"},
      {"x=--mbs:1..8:log3", "ends in ':log3', which is not a scale; write :log or :log2"},
      {"x=--mbs:0..8:log2", "has no logarithm at its lower end; begin above 0"},
      {"x=--mbs:0.0..8:log", "has no logarithm at its lower end"},
      {"x=--mbs:0.5..8:log2", "is of real numbers; write whole numbers before :log2, or :log"},
      {"x=--mbs:5..7:log2", "power of two"},
      {"x=--mbs:1..9999999999999999", "is too large"},
      {"x=--mbs:1..1000000000", "too many"},
  };
  for (const auto& [text, said] : table) {
    const std::string error = user_error_of([&, text = text] { jobs::read_vary(text); });
    EXPECT_EQ(error.rfind(std::string("--vary '") + text + "': ", 0), 0U) << error;
    EXPECT_NE(error.find(said), std::string::npos) << text << "\n" << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace krigtune::vary_test
