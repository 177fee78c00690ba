package import Foundation

/// The programs of this package that were built with the tests.
package enum BuiltProgram {
    /// The program `name` beside the tests' own executable, where SwiftPM puts it.
    package static func beside(_ name: String) -> URL {
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().appending(path: name)
    }
}
