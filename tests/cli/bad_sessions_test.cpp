// Every file of tests/golden/bad_sessions is refused with the line at its beginning: "// expect: <line>", where DIR is
// its directory. `test_cli_bad_sessions --write-expectations` writes the present lines; read the difference before you
// commit it.
#include <gtest/gtest.h>

#include <map>

#include "cli/cli_fixtures.h"
#include "core/error.h"

namespace krigtune {
namespace {

const std::filesystem::path kDirectory = KRIGTUNE_BAD_SESSIONS;
constexpr const char* kExpect = "// expect: ";

std::vector<std::filesystem::path> bad_sessions() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string expected_line(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  if (text.rfind(kExpect, 0) != 0) return file.string() + " does not say what to expect";
  const std::size_t begin = std::string(kExpect).size();
  return replaced(text.substr(begin, text.find('\n') - begin), "DIR", kDirectory.string());
}

/// Returns name and time of everything in a directory.
std::map<std::string, std::filesystem::file_time_type> contents(const std::filesystem::path& directory) {
  std::map<std::string, std::filesystem::file_time_type> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    files[entry.path().string()] = entry.last_write_time();
  }
  return files;
}

void expect_one_line(const std::vector<std::string>& arguments, const std::string& line) {
  const Said said = run_krigtune(arguments);
  EXPECT_EQ(said.code, 2) << arguments[0];
  EXPECT_EQ(said.err, "krigtune: " + line + "\n") << arguments[0];
  EXPECT_EQ(said.out, "") << arguments[0];
}

TEST(BadSession, IsRefusedInOneLineByEveryCommandAndNothingIsWritten) {
  const TemporaryDirectory directory;
  const auto before = contents(kDirectory);
  for (const std::filesystem::path& file : bad_sessions()) {
    SCOPED_TRACE(file.filename().string());
    const std::string line = expected_line(file);
    expect_one_line({"plan", file.string()}, line);
    expect_one_line({"plan", file.string(), "--show-config"}, line);
    expect_one_line({"tune", file.string(), "--out", (directory / "run").string()}, line);
    expect_one_line({"compare", file.string(), "--out", (directory / "compared").string()}, line);
  }
  EXPECT_EQ(contents(kDirectory), before);
  EXPECT_TRUE(contents(directory.path()).empty());
}

// The line begins with the file, followed by the pointer (unless the file is not JSON), and ends with the fix.
TEST(BadSession, IsNamedWithThePlaceAndTheMend) {
  for (const std::filesystem::path& file : bad_sessions()) {
    const std::string line = expected_line(file);
    EXPECT_EQ(line.rfind(file.string() + ": ", 0), 0U) << line;
    EXPECT_NE(line.find("; "), std::string::npos) << line;
    const std::string what = line.substr(file.string().size() + 2);
    const bool is_syntax =
        what.rfind("not JSON at line ", 0) == 0 || what.rfind("nested ", 0) == 0 || what.rfind("a number ", 0) == 0;
    EXPECT_TRUE(is_syntax || what[0] == '/') << line;
    EXPECT_LE(line.size() - file.string().size(), 260U) << line;
  }
}

TEST(BadSession, ComesInEveryKind) { EXPECT_GE(bad_sessions().size(), 45U); }

TEST(BadSession, ThatIsNoFileIsRefusedToo) {
  const TemporaryDirectory directory;
  const std::string absent = (directory / "absent.json").string();
  const std::string empty = directory.write("empty.json", "").string();
  const std::string folder = directory.path().string();
  expect_one_line({"plan", absent}, "cannot read '" + absent + "': No such file or directory; check the path");
  expect_one_line({"plan", folder}, "cannot read '" + folder + "': it is a directory; name a file");
  expect_one_line({"plan", empty}, empty + ": /: the file is empty; write { ... }");
}

// Editors on Windows write a byte order mark.
TEST(GoodSession, MayBeginWithAByteOrderMark) {
  const TemporaryDirectory directory;
  const auto file = directory.write("bom.json", "\xef\xbb\xbf// of Windows\r\n{\"space\": {\"a\": [1, 2]}}\r\n");
  const Said said = run_krigtune({"plan", file.string()});
  EXPECT_EQ(said.code, 0) << said.err;
}

void write_expectations() {
  for (const std::filesystem::path& file : bad_sessions()) {
    const std::string text = read_text(file);
    std::string line = run_krigtune({"plan", file.string()}).err;
    line = replaced(line.substr(0, line.find('\n')), kDirectory.string(), "DIR");
    const std::string prefix = "krigtune: ";
    if (line.rfind(prefix, 0) == 0) line = line.substr(prefix.size());
    const std::size_t rest = text.rfind(kExpect, 0) == 0 ? text.find('\n') + 1 : 0;
    write_atomically(file, kExpect + line + "\n" + text.substr(rest));
  }
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 2 && std::string(argv[1]) == "--write-expectations") {
    krigtune::write_expectations();
    return 0;
  }
  return RUN_ALL_TESTS();
}
