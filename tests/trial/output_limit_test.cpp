// What remains of a program's output.
#include "trial/output_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/files.h"
#include "trial/measure_reader.h"
#include "trial/process_fixture.h"

namespace krigtune::output_limit_test {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class OutputLimit : public Process {
 protected:
  std::filesystem::path out() const { return dir_ / "out"; }
  void write(const std::string& text) const { std::ofstream(out(), std::ios::app) << text; }
  std::uint64_t kept_on_disk() const {
    struct stat state {};
    ::stat(out().c_str(), &state);
    return static_cast<std::uint64_t>(state.st_blocks) * 512;
  }
  bool can_free() const {
    write(std::string(1 << 16, 'x'));
    const int file = ::open(out().c_str(), O_WRONLY | O_CLOEXEC);
    const int rc = ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
    ::close(file);
    std::filesystem::remove(out());
    return rc == 0;
  }
};

std::string numbered_lines(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += fmt::format("line {:03}\n", i);  // nine bytes each
  return text;
}

TEST_F(OutputLimit, AShortLogStaysAsItIs) {
  write(numbered_lines(1, 10));
  EXPECT_FALSE(trial::shorten_output(out(), 90));
  EXPECT_EQ(read_text(out()), numbered_lines(1, 10));
  EXPECT_FALSE(trial::shorten_output(dir_ / "nothing", 90));
}

TEST_F(OutputLimit, ALongLogKeepsItsFirstAndLastWholeLinesAndSaysHowMuchIsLeftOut) {
  write(numbered_lines(1, 100));
  EXPECT_TRUE(trial::shorten_output(out(), 40));
  EXPECT_EQ(read_text(out()),
            numbered_lines(1, 2) +
                "[krigtune left out 864 B here (864 bytes): a log keeps its first and its last 20 B]\n" +
                numbered_lines(99, 100));
}

TEST_F(OutputLimit, AnEndlessLineIsCut) {
  write(std::string(1000, 'a') + std::string(1000, 'b'));
  EXPECT_TRUE(trial::shorten_output(out(), 10));
  const std::string text = read_text(out());
  EXPECT_EQ(text.substr(0, 6), "aaaaa\n");
  EXPECT_EQ(text.substr(text.size() - 6), "\nbbbbb");
  EXPECT_NE(text.find("(1989 bytes)"), std::string::npos) << text;
}

TEST_F(OutputLimit, TheMiddleIsFreedWhileTheProgramRunsUpToWhatWasRead) {
  if (!can_free()) GTEST_SKIP() << "this file system frees no part of a file";
  trial::ProcessSpec spec = program({"true"});
  std::uint64_t read_bytes = 5 * kMiB;
  spec.read_up_to = [&](const std::filesystem::path&) { return read_bytes; };
  trial::OutputLimit limit(spec, 4 * kMiB);
  write(std::string(20 * kMiB, 'x'));
  limit.look(0.0);
  EXPECT_LE(kept_on_disk(), 17 * kMiB + kMiB / 2);
  EXPECT_GE(kept_on_disk(), 17 * kMiB);
  read_bytes = 20 * kMiB;
  limit.look(0.5);
  EXPECT_GE(kept_on_disk(), 17 * kMiB) << "once a second";
  limit.look(1.0);
  EXPECT_LE(kept_on_disk(), 4 * kMiB + kMiB / 2);
  EXPECT_EQ(std::filesystem::file_size(out()), 20 * kMiB);
  write("end\n");
  EXPECT_TRUE(trial::shorten_output(out(), 4 * kMiB));
  const std::string text = read_text(out());
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 5), "xend\n");
}

// 30 MiB with a number every 100 bytes: all are seen, although little of it is on the disk at the end.
TEST_F(OutputLimit, WhoMeasuresSeesEveryLine) {
  trial::MeasureSpec measures;
  trial::Measure measure;
  measure.name = "value";
  measure.pattern = "value ([0-9]+)";
  measures.metrics = {measure};
  trial::MeasureReader reader(measures, {}, {out(), dir_ / "err", dir_.path()});
  trial::ProcessSpec spec = program({"true"});
  spec.read_up_to = [&](const std::filesystem::path& file) { return reader.read_up_to(file); };
  trial::OutputLimit limit(spec, 2 * kMiB);
  constexpr int kLines = 300'000;
  for (int i = 0; i < kLines; i += 1000) {
    std::string text;
    for (int line = i; line < i + 1000; ++line) text += fmt::format("{:<90}value {}\n", "step", line);
    write(text);
    limit.look(static_cast<double>(i));  // it has not been read yet
    reader.look();
  }
  limit.look(1e9);
  reader.finish();
  EXPECT_EQ(reader.measurement().matches(0), kLines);
  EXPECT_EQ(reader.measurement().last(0), kLines - 1);
  EXPECT_EQ(reader.read_up_to(dir_ / "err"), 0U);
  EXPECT_GT(reader.read_up_to(dir_ / "another"), std::uint64_t{1} << 60) << "nobody reads it";
}

}  // namespace krigtune::output_limit_test
