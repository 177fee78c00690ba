import Foundation

/// Which file is open as the database.
///
/// Somebody may put another one in its place while it is open, as when a backup is restored beneath a server that runs.
/// SQLite goes on with the old one, which has no name any more: what is written there is lost with the end of the
/// process, and connections that are opened later read the other file, in which what has ended since lives still.
struct SQLiteFile: Sendable {
    /// What tells a file from another one of the same name.
    private struct Identity: Sendable, Hashable {
        let device: UInt64
        let number: UInt64

        /// `nil` if the file is missing.
        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = UInt64(truncatingIfNeeded: status.st_dev)
            number = UInt64(status.st_ino)
        }
    }

    private let path: String
    private let opened: Identity?

    /// The file that has this name now, and is open.
    init(path: String) {
        self.path = path
        opened = Identity(path)
    }

    /// Why nothing is done while another file has the name.
    static let replaced = StoreError(
        .unavailable,
        "another file was put in the place of the database while it is open: stop the server, and restore again")

    /// Whether another file has its name by now.
    var isReplaced: Bool {
        guard let opened, let found = Identity(path) else { return false }
        return found != opened
    }

    /// Finds out whether it still has its name.
    ///
    /// - Throws: ``StoreError`` when another file has it, or none.
    func check() throws(StoreError) {
        guard let opened else { return }
        guard let found = Identity(path) else {
            throw StoreError(
                .unavailable, "the file of the database was taken away while it is open: stop the server")
        }
        guard found == opened else { throw Self.replaced }
    }
}
