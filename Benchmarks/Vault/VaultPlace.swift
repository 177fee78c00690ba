import AssentCore
import AssentVault
import Foundation

/// A vault with a number of secrets in a directory of its own.
struct VaultPlace: Sendable {
    let size: Int
    private let directory: URL
    private let keyFile: URL
    private let vault: FileVault

    /// What is measured, and how much longer it may take with up to a hundred times as many secrets.
    static let works: [(title: String, limit: Double, work: @Sendable (VaultPlace, Int) async throws -> Void)] = [
        ("open a vault", 5, { place, _ in _ = try await place.open() }),
        (
            "one write to a vault", 1.5,
            { place, number in
                try await place.vault.update(
                    "name-\(number % place.size)", to: Secret("value \(number)"), expected: .any)
            }
        ),
    ]

    init(_ workspace: Workspace, size: Int) async throws {
        self.size = size
        let base = URL(filePath: try workspace.directory("vault-\(size)"))
        directory = base.appending(path: "vault")
        keyFile = base.appending(path: "vault.key")
        vault = try await Self.open(directory, keyFile)
        let value = Secret(bytes: SystemRandom().bytes(512))
        for number in 0..<size { try await vault.update("name-\(number)", to: value, expected: .absent) }
    }

    /// Seconds for one piece of work.
    func time(_ work: @Sendable (VaultPlace, Int) async throws -> Void, count: Int) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        for number in 0..<count { try await work(self, number) }
        return (clock.now - start).inSeconds / Double(count)
    }

    private func open() async throws -> FileVault { try await Self.open(directory, keyFile) }

    private static func open(_ directory: URL, _ keyFile: URL) async throws -> FileVault {
        try await FileVault.open(directory, keys: .software(SoftwareKeyProvider(unprotectedFile: keyFile)))
    }
}
