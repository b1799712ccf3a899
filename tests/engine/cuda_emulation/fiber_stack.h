#pragma once
// A fiber's stack, with the calls that tell AddressSanitizer when execution moves to another stack.
#include <boost/context/fixedsize_stack.hpp>
#include <cstddef>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace krigtune::emulation {

class FiberStack {
 public:
  /// A stack allocator for Boost.Context. The FiberStack must outlive it.
  struct Allocator {
    FiberStack* stack;

    boost::context::stack_context allocate() const {
      constexpr std::size_t kBytes = std::size_t{128} << 10U;
      const boost::context::stack_context made = boost::context::fixedsize_stack(kBytes).allocate();
      stack->bottom_ = static_cast<char*>(made.sp) - made.size;
      stack->bytes_ = made.size;
      return made;
    }
    static void deallocate(boost::context::stack_context& context) {
      boost::context::fixedsize_stack().deallocate(context);
    }
  };

#ifdef __SANITIZE_ADDRESS__
  void before_entering() { __sanitizer_start_switch_fiber(&callers_fake_, bottom_, bytes_); }
  void after_returning() const { __sanitizer_finish_switch_fiber(callers_fake_, nullptr, nullptr); }
  void after_entering() { __sanitizer_finish_switch_fiber(fake_, &callers_bottom_, &callers_bytes_); }
  void before_leaving() { __sanitizer_start_switch_fiber(&fake_, callers_bottom_, callers_bytes_); }
  void before_ending() { __sanitizer_start_switch_fiber(nullptr, callers_bottom_, callers_bytes_); }
  /// Sets a function that is called after a report that ends the program.
  static void say_at_death(void (*say)()) { __sanitizer_set_death_callback(say); }

 private:
  void* fake_ = nullptr;
  void* callers_fake_ = nullptr;
  const void* callers_bottom_ = nullptr;
  std::size_t callers_bytes_ = 0;
#else
  void before_entering() {}
  void after_returning() {}
  void after_entering() {}
  void before_leaving() {}
  void before_ending() {}
  static void say_at_death(void (* /*say*/)()) {}

 private:
#endif
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace krigtune::emulation
