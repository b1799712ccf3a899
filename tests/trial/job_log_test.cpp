// Reads the output of a job, and compares with simple and slow splitters.
#include "trial/job_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <random>
#include <regex>

#include "trial/temporary_directory.h"

namespace krigtune::job_log_test {

std::vector<std::string> split(const std::string& bytes, const std::vector<std::size_t>& cuts,
                               std::size_t most = trial::kMostLineBytes) {
  std::vector<std::string> lines;
  const auto keep = [&](const std::string& line) { lines.push_back(line); };
  trial::LineSplitter splitter(most);
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    splitter.add(std::string_view(bytes).substr(begin, cut - begin), keep);
    begin = cut;
  }
  splitter.add(std::string_view(bytes).substr(begin), keep);
  splitter.finish(keep);
  return lines;
}

// Splits everything at once with regular expressions on whole lines.
std::vector<std::string> obvious(std::string bytes, std::size_t most = trial::kMostLineBytes) {
  if (bytes.rfind("\xEF\xBB\xBF", 0) == 0) bytes.erase(0, 3);
  const std::regex colour("\x1b\\[[0-9;]*m");
  std::vector<std::string> lines;
  std::string line;
  const auto end = [&] {
    std::erase(line, '\0');
    line = std::regex_replace(line, colour, "").substr(0, most);
    if (!line.empty()) lines.push_back(line);
    line.clear();
  };
  for (const char c : bytes) {
    if (c == '\n' || c == '\r') {
      end();
    } else {
      line += c;
    }
  }
  end();
  return lines;
}

TEST(LineSplitter, SplitsRandomBytesAsTheObviousSplitterDoesWhereverTheyAreCut) {
  std::mt19937 random(20260824);
  const std::vector<std::string> pieces = {"\n",
                                           "\r",
                                           "\r\n",
                                           "a",
                                           "loss: 1",
                                           "\x1b[31m",
                                           "\x1b[0m",
                                           "\x1b[1;32m",
                                           "\xE2\x94\x81",
                                           " ",
                                           std::string(1, '\0'),
                                           "[rank0]:",
                                           "0123456789abcdef"};
  for (int round = 0; round < 500; ++round) {
    std::string bytes = round % 7 == 0 ? "\xEF\xBB\xBF" : "";
    for (std::size_t i = random() % 60; i > 0; --i) bytes += pieces[random() % pieces.size()];
    std::vector<std::size_t> cuts;
    for (std::size_t at = 0; at < bytes.size(); at += 1 + random() % 9) cuts.push_back(at);
    ASSERT_EQ(split(bytes, cuts), obvious(bytes)) << "seed 20260824, round " << round;
    ASSERT_EQ(split(bytes, {}, 12), obvious(bytes, 12)) << "seed 20260824, round " << round;
  }
}

TEST(LineSplitter, LeavesOutEverythingThatOnlyATerminalUnderstands) {
  EXPECT_EQ(split("\x1b[?25l\x1b[38;5;9mstep 1\x1b[K\x1b(B\n\x1b]0;a title\astep 2\x1b]8;;http://x\x1b\\!\n", {}),
            (std::vector<std::string>{"step 1", "step 2!"}));
  EXPECT_EQ(split("a\x1b[31\nb\x1b]no end\nc\x1b", {}), (std::vector<std::string>{"a", "b", "c"}))
      << "an escape sequence ends with its line";
}

TEST(LineSplitter, TheStatesOfAProgressBarAreLines) {
  EXPECT_EQ(split(" 12%|#   | 1/8\r 25%|##  | 2/8\r\n\n\rdone", {}),
            (std::vector<std::string>{" 12%|#   | 1/8", " 25%|##  | 2/8", "done"}));
}

std::string utf16(const std::u16string& text, bool little) {
  std::string bytes = little ? "\xFF\xFE" : "\xFE\xFF";
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xFF);
    const char high = static_cast<char>(unit >> 8);
    bytes += little ? low : high;
    bytes += little ? high : low;
  }
  return bytes;
}

TEST(LineSplitter, DecodesUtf16WithAByteOrderMarkWhereverItIsCut) {
  const std::u16string text = u"loss: 1.5\r\nna\u00EFve \u2501 \U0001F600 end\n\x1b[31mred\x1b[0m";
  const std::vector<std::string> expected = {"loss: 1.5", "na\xC3\xAFve \xE2\x94\x81 \xF0\x9F\x98\x80 end", "red"};
  for (const bool little : {true, false}) {
    const std::string bytes = utf16(text, little);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) ASSERT_EQ(split(bytes, {cut}), expected) << cut;
  }
  EXPECT_EQ(split(utf16(std::u16string{u'a', 0xD83D, u'b', 0xDE00}, true), {}),
            (std::vector<std::string>{"a\xEF\xBF\xBD"
                                      "b\xEF\xBF\xBD"}))
      << "halves of a pair";
}

TEST(LineSplitter, HoldsLittleOfAHundredMegabytesWithoutALineBreak) {
  constexpr std::size_t kPieces = 1600;
  const std::string piece(std::size_t{1} << 16, 'x');
  trial::LineSplitter splitter;
  std::vector<std::string> lines;
  const auto keep = [&](const std::string& line) { lines.push_back(line); };
  splitter.add("loss: 2.5 ", keep);
  for (std::size_t i = 0; i < kPieces; ++i) {
    splitter.add(piece, keep);
    ASSERT_LE(splitter.held(), 4 * trial::kMostLineBytes);
  }
  splitter.add("\nnext", keep);
  splitter.finish(keep);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), trial::kMostLineBytes);
  EXPECT_EQ(lines[0].substr(0, 12), "loss: 2.5 xx");
  EXPECT_EQ(lines[1], "next");
}

std::string read_now(trial::GrowingFile& file) {
  std::string text;
  const trial::GrowingFile::Change change = file.look();
  if (change == trial::GrowingFile::Change::kReplaced) text = "anew:";
  for (std::string_view piece = file.next(); !piece.empty(); piece = file.next()) text += piece;
  return text;
}

TEST(GrowingFile, GivesWhatIsNewAndNoticesThatItBeganAnew) {
  const TemporaryDirectory dir;
  trial::GrowingFile file(dir / "log");
  EXPECT_EQ(read_now(file), "");
  dir.write("log", "one");
  EXPECT_EQ(read_now(file), "one");
  EXPECT_EQ(read_now(file), "");
  std::ofstream(dir / "log", std::ios::app) << " two";
  EXPECT_EQ(read_now(file), " two");
  dir.write("log", "3");
  EXPECT_EQ(read_now(file), "anew:3");
  dir.write("other", "another file, longer than the first");
  std::filesystem::rename(dir / "other", dir / "log");
  EXPECT_EQ(read_now(file), "anew:another file, longer than the first");
  EXPECT_GT(file.written_s(), 1e9);
}

TEST(GrowingFile, BehindTheEndOnlyWhatIsNewIsRead) {
  const TemporaryDirectory dir;
  dir.write("log", "of an earlier trial\n");
  trial::GrowingFile file = trial::GrowingFile::behind_its_end(dir / "log");
  EXPECT_EQ(read_now(file), "");
  std::ofstream(dir / "log", std::ios::app) << "of this one\n";
  EXPECT_EQ(read_now(file), "of this one\n");
}

TEST(GrowingFile, IsNoPipeAndNoFolder) {
  const TemporaryDirectory dir;
  std::filesystem::create_directory(dir / "folder");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const char* name : {"folder", "pipe", "absent"}) {
    trial::GrowingFile file(dir / name);
    EXPECT_EQ(read_now(file), "") << name;
  }
}

TEST(FilesOfAPattern, AStarStandsForAnythingWithinAName) {
  const TemporaryDirectory dir;
  std::filesystem::create_directories(dir / "runs/a");
  std::filesystem::create_directories(dir / "runs/b/deeper");
  for (const char* name : {"runs/a/log.jsonl", "runs/b/log.jsonl", "runs/b/other.txt", "runs/b/deeper/log.jsonl"}) {
    dir.write(name, "");
  }
  const auto names = [&](const std::string& pattern) {
    std::vector<std::string> found;
    for (const auto& path : trial::files_of_pattern(dir / pattern)) {
      found.push_back(path.lexically_relative(dir.path()).string());
    }
    return found;
  };
  EXPECT_EQ(names("runs/*/log.jsonl"), (std::vector<std::string>{"runs/a/log.jsonl", "runs/b/log.jsonl"}));
  EXPECT_EQ(names("r*s/b/*o*er*t*"), (std::vector<std::string>{"runs/b/other.txt"}));
  EXPECT_EQ(names("runs/b"), std::vector<std::string>()) << "a folder is not a file";
  EXPECT_EQ(names("runs/b/other.txt"), (std::vector<std::string>{"runs/b/other.txt"}));
  EXPECT_EQ(names("nowhere/*"), std::vector<std::string>());
}

TEST(PrintedNumber, IsReadAsPeopleMeanIt) {
  EXPECT_EQ(trial::printed_number("5444.9"), 5444.9);
  EXPECT_EQ(trial::printed_number(" 1.825991E+00 "), 1.825991);
  EXPECT_EQ(trial::printed_number("7,282"), 7282.0);
  EXPECT_EQ(trial::printed_number("1,234,567.5"), 1234567.5);
  EXPECT_EQ(trial::printed_number("8.79K"), 8790.0);
  EXPECT_EQ(trial::printed_number("480B"), 480e9);
  EXPECT_EQ(trial::printed_number("1.6M"), 1.6e6);
  EXPECT_EQ(trial::printed_number("+3"), 3.0);
  EXPECT_EQ(trial::printed_number("-2e-3"), -2e-3);
  EXPECT_TRUE(std::isnan(trial::printed_number("nan").value()));
  EXPECT_TRUE(std::isinf(trial::printed_number("-inf").value()));
  for (const char* text : {"", " ", "N/A", "1.2.3", "12,34", ",123", "1,2345", "3 GiB", "1e999", "0x10", "K", "nanK"}) {
    EXPECT_EQ(trial::printed_number(text), std::nullopt) << text;
  }
}

}  // namespace krigtune::job_log_test
