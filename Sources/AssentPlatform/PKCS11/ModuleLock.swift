#if PKCS11 && os(Linux)
import AssentCore
import Foundation

/// Exclusion among processes that make keys through one module, since a token takes two keys of one name.
///
/// The lock is on the module's own file: everybody who uses the module can open it, and the end of a process frees it.
struct ModuleLock: Sendable {
    private let file: Int32

    init(_ path: String, clock: any WallClock, timeout: TimeInterval) async throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw KeyProviderError(
                .unavailable, "There is no PKCS#11 module at \(path). Install the token's driver, or correct the path.")
        }
        self.file = file
        do {
            let deadline = clock.now.addingTimeInterval(timeout)
            let held: Void? = try await clock.poll(until: deadline) { flock(file, LOCK_EX | LOCK_NB) == 0 ? () : nil }
            guard held != nil else {
                throw KeyProviderError(
                    .unavailable, "Another process is making keys in this token. Try again, or see which one hangs.")
            }
        } catch {
            close(file)
            throw error
        }
    }

    func release() {
        // Closing alone would leave the lock to a child process that was forked meanwhile, until it runs another
        // program.
        _ = flock(file, LOCK_UN)
        close(file)
    }
}
#endif
