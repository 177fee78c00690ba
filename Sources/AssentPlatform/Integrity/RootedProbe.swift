#if os(Linux)
package import AssentCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Finds a program that has become root, and an executable or vault that everybody may write.
package struct RootedProbe: IntegrityProbe {
    package let kind = IntegrityKind.rooted
    private let vaults: [String]
    private let executable: String
    /// The way to the program's own file through `/proc` is long, and the file is the same as long as the program runs.
    private let program: KeptFile?
    private let users: @Sendable () -> (real: UInt32, effective: UInt32)

    /// - Parameters:
    ///   - vaults: the directories of the app's vaults. One that is not there yet is not a finding.
    ///   - executable: the program's file.
    ///   - users: the process's real and effective user.
    package init(
        vaults: [String] = [], executable: String = "/proc/self/exe",
        users: @escaping @Sendable () -> (real: UInt32, effective: UInt32) = { (getuid(), geteuid()) }
    ) {
        self.vaults = vaults
        self.executable = executable
        program = KeptFile(executable)
        self.users = users
    }

    package func finding() -> String? {
        let (real, effective) = users()
        if effective == 0, real != 0 { return "The program has become root, and another user has started it." }
        // A program that may be run and not read cannot be kept open.
        guard let mode = program?.mode ?? Self.mode(executable) else {
            return "The program's own file cannot be looked at."
        }
        if mode & S_IWOTH != 0 { return "Everybody may write the program's own file." }
        for vault in vaults {
            if let mode = Self.mode(vault), mode & S_IWOTH != 0 { return "Everybody may write the vault." }
        }
        return nil
    }

    private static func mode(_ path: String) -> mode_t? {
        var found = stat()
        return stat(path, &found) == 0 ? found.st_mode : nil
    }
}
#endif
