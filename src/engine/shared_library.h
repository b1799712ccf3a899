#pragma once
#include <dlfcn.h>

#include <memory>

namespace krigtune::engine {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
/// A library opened at run time; null if it cannot be opened.
using SharedLibrary = std::unique_ptr<void, CloseLibrary>;

inline SharedLibrary open_library(const char* name) { return SharedLibrary(dlopen(name, RTLD_NOW | RTLD_LOCAL)); }

/// Returns a function of the library, or null if it has no such function.
template <class Function>
Function* find(const SharedLibrary& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

}  // namespace krigtune::engine
