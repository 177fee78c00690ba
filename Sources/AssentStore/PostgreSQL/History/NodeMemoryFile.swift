import Foundation

/// Where a node keeps its ``NodeMemory``, so that it still recognises an old server after a restart.
package struct NodeMemoryFile: Sendable, Hashable {
    /// Its path, in the node's data directory.
    package let path: String

    /// A file, which need not exist yet.
    package init(path: String) { self.path = path }

    /// What is remembered; `nil` if the node has not used the database yet.
    ///
    /// - Throws: ``StoreError``: the file is not what a node has written.
    func read() throws(StoreError) -> NodeMemory? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StoreError(.unavailable, "\(path) cannot be read: \(String(cString: strerror(errno))).")
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = Foundation.read(descriptor, &bytes, bytes.count)
        guard count >= 0, let memory = NodeMemory(text: String(decoding: bytes.prefix(count), as: UTF8.self)) else {
            throw StoreError(
                .unavailable,
                """
                \(path) is not what the server has written. It says which history of the database this node has used: \
                make sure that the database is the right one, then run 'assent database adopt'.
                """)
        }
        return memory
    }

    /// Replaces what is remembered; afterwards it is on the disk.
    ///
    /// - Throws: ``StoreError``: then the file has the old content, or the new one.
    func write(_ memory: NodeMemory) throws(StoreError) {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure() }
        let bytes = Array(memory.text.utf8)
        let isWritten = Foundation.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
        close(descriptor)
        guard isWritten, rename(temporary, path) == 0 else { throw failure() }
        let directory = open((path as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw failure() }
        defer { close(directory) }
        // Some file systems cannot sync a directory.
        guard fsync(directory) == 0 || errno == EINVAL else { throw failure() }
    }

    /// Forgets a mark of which an earlier version has not kept whose it is, where the node gets another id, by which it
    /// has written none: the right database would look like a copy. The generation is kept. A mark that has its node's
    /// id is looked for under that, and stays: without it a backup would be let in that no fence was run on.
    ///
    /// - Throws: ``StoreError``: the file is not what a node has written, or cannot be written.
    package func forgetMark() throws(StoreError) {
        guard var memory = try read(), memory.owner == nil, memory.mark > 0 else { return }
        memory.mark = 0
        try write(memory)
    }

    /// Forgets it.
    ///
    /// - Returns: whether there was something to forget.
    /// - Throws: ``StoreError``.
    package func remove() throws(StoreError) -> Bool {
        if unlink(path) == 0 { return true }
        guard errno == ENOENT else { throw failure() }
        return false
    }

    private func failure() -> StoreError {
        StoreError(.unavailable, "\(path) cannot be written: \(String(cString: strerror(errno))).")
    }
}
