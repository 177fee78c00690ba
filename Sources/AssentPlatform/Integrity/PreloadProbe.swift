#if os(Linux)
package import AssentCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Finds libraries that the dynamic linker was told to load before those of the program: by `LD_PRELOAD`, by `LD_AUDIT`
/// or by `/etc/ld.so.preload`.
package struct PreloadProbe: IntegrityProbe {
    package let kind = IntegrityKind.preload
    private let allowed: Set<String>
    private let file: String
    private let variable: @Sendable (String) -> String?

    /// The most bytes of the file; a longer one is a finding.
    private static let limit = 4096

    /// - Parameters:
    ///   - allowed: the libraries that may be loaded so, each written as it is in the variable or in the file.
    ///   - file: the file for all programs of this machine.
    ///   - variable: reads a variable of the environment.
    package init(
        allowing allowed: Set<String> = [], file: String = "/etc/ld.so.preload",
        variable: @escaping @Sendable (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) {
        self.allowed = allowed
        self.file = file
        self.variable = variable
    }

    package func finding() -> String? {
        for name in ["LD_PRELOAD", "LD_AUDIT"] {
            if let value = variable(name), !isAllowed(value) {
                return "\(name) names a library that is not allowed."
            }
        }
        switch BoundedFile(file, upTo: Self.limit) {
        case .absent: return nil
        case .unreadable: return "\(file) cannot be read."
        case .bytes(_, isCut: true): return "\(file) is too long to be looked at."
        case .bytes(let bytes, isCut: false):
            // What stands behind a # is left out by the linker, too.
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            let isFine = lines.allSatisfy { line in
                isAllowed(line.prefix { $0 != "#" })
            }
            return isFine ? nil : "\(file) names a library that is not allowed."
        }
    }

    private func isAllowed(_ list: some StringProtocol) -> Bool {
        list.split { $0.isWhitespace || $0 == ":" }.allSatisfy { allowed.contains(String($0)) }
    }
}
#endif
