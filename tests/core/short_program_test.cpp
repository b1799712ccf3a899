#include "core/short_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace krigtune {
namespace {

using testing::StrEq;

TEST(ShortProgram, GivesWhatItPrintsToTheStreamThatIsRead) {
  const std::vector<std::string> script = {"-c", "echo out; echo err >&2; exit 3"};
  const EndedProgram out = run_short_program("/bin/sh", script, Stream::kOut);
  EXPECT_EQ(out.error, 0);
  EXPECT_FALSE(out.succeeded());
  EXPECT_THAT(out.text, StrEq("out\n"));
  EXPECT_EQ(how_it_ended(out), "it ends with code 3");
  EXPECT_THAT(run_short_program("/bin/sh", script, Stream::kErr).text, StrEq("err\n"));
  EXPECT_TRUE(run_short_program("/bin/true", {}, Stream::kOut).succeeded());
}

TEST(ShortProgram, SaysThatItIsMissingOrWasKilled) {
  const EndedProgram none = run_short_program("/none/such", {}, Stream::kOut);
  EXPECT_EQ(none.error, ENOENT);
  EXPECT_EQ(how_it_ended(none), "it cannot be started: No such file or directory");
  const EndedProgram killed = run_short_program("/bin/sh", {"-c", "kill -9 $$"}, Stream::kOut);
  EXPECT_EQ(how_it_ended(killed), "it was ended by signal 9");
}

TEST(ShortProgram, OfALoaderIsTheOneThatItHasStarted) {
  EXPECT_EQ(program_path("/usr/bin/krigtune", "/opt/krigtune/krigtune"), "/usr/bin/krigtune");
  EXPECT_EQ(program_path("/opt/krigtune/lib/ld-linux-x86-64.so.2", "/opt/krigtune/krigtune"), "/opt/krigtune/krigtune");
  EXPECT_EQ(program_path("/lib64/ld-linux-x86-64.so.2", nullptr), "/lib64/ld-linux-x86-64.so.2");
  EXPECT_TRUE(std::filesystem::exists(own_program()));
}

// More than a pipe holds, so a program whose output was not read to its end would never end.
TEST(ShortProgram, EndsHoweverMuchItPrints) {
  const EndedProgram ended = run_short_program("/bin/sh", {"-c", "head -c 1000000 /dev/zero"}, Stream::kOut);
  EXPECT_TRUE(ended.succeeded());
  EXPECT_EQ(ended.text.size(), std::size_t{64} << 10U);
}

}  // namespace
}  // namespace krigtune
