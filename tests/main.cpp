// `test_tuner loop` runs the tests of tests/tuner/loop_test.cpp, `test_tuner` all of the layer's. GoogleTest's options
// and GTEST_FILTER hold as ever; with a word, a filter may only leave tests out ("-Loop.Stops*").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

// The names of the tests in the file of `unit`, as GoogleTest's filters have them; "" if there is none.
std::string tests_of(const std::string& unit) {
  const std::string file = "/" + unit + "_test.cpp";
  std::string names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!std::string(test.file()).ends_with(file)) continue;
      if (!names.empty()) names += ':';
      names.append(suite.name()).append(1, '.').append(test.name());
    }
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  const std::string names = tests_of(argv[1]);
  const std::string filter = testing::GTEST_FLAG(filter);
  if (argc > 2 || names.empty() || !(filter == "*" || filter.starts_with("-"))) {
    std::fprintf(
        stderr,
        "usage: %s [<unit>] [GoogleTest's options]; there is no such unit, or a filter that chooses beside it\n",
        argv[0]);
    return 2;
  }
  testing::GTEST_FLAG(filter) = filter == "*" ? names : names + filter;
  return RUN_ALL_TESTS();
}
