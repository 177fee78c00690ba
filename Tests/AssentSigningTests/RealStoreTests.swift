import AssentCore
import AssentSigning
import AssentVault
import Foundation
import Testing

@Suite("Signing device: on a vault and a key file")
struct RealStoreTests {
    @Test("A container, its keys and a decision that was not sent survive a restart")
    func restart() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = try ScriptedServer()
        func device() async throws -> SigningDevice {
            let vault = try await FileVault.open(
                directory.appending(path: "vault"), store: "signing",
                keys: .softwareFile(directory.appending(path: "vault-keys")))
            return SigningDevice(
                store: vault, keys: SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")),
                transport: server.transport)
        }
        let enrolment = try await device().enrol(SigningInvite(scanned: server.invite()), name: "Laptop")
        #expect(try await server.type(enrolment.digits))
        let container = try await device().container(enrolment.containerID)
        #expect(try await container.status().state == .active)
        _ = await server.ask()
        await server.refuse("/device/transactions/decide", .init(status: 503, code: "unavailable"))
        let second = try await device()
        let ids = try await second.container(container.id).transactionIDs()
        let transaction = try await second.retrieveTransactionInfo(ids[0]).transaction()
        await #expect(throws: SigningError(.unavailable)) { try await transaction.setStatus("accept", number: "42") }
        try await device().sendQueued()
        #expect(await server.transactions.map(\.effect) == ["approve"])
        #expect(try await device().container(container.id).delete())
        #expect(try await device().containers().isEmpty)
        let keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys"))
        #expect(try await keys.keyNames().isEmpty)
    }

    @Test("A PIN survives a restart on a vault and a key file, and a deletion leaves nothing of it")
    func password() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = try ScriptedServer()
        try await server.offer(ScriptedServer.PasswordOffer(.assisted))
        func vault() async throws -> FileVault {
            try await FileVault.open(
                directory.appending(path: "vault"), store: "signing",
                keys: .softwareFile(directory.appending(path: "vault-keys")))
        }
        func device() async throws -> SigningDevice {
            SigningDevice(
                store: try await vault(), keys: SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")),
                transport: server.transport)
        }
        let enrolment = try await device().enrol(SigningInvite(scanned: server.invite())) { _ in Secret("271828") }
        #expect(try await server.type(enrolment.digits))
        try await device().container(enrolment.containerID).status()
        _ = await server.ask()
        let second = try await device()
        let container = try await second.container(enrolment.containerID)
        let transaction = try await second.retrieveTransactionInfo(container.transactionIDs()[0]).transaction()
        try await transaction.setStatus("accept", password: Secret("271828"), number: "42")
        try await container.password(.signing)?.change(from: Secret("271828"), to: Secret("839201"))
        try await device().container(container.id).password(.signing)?.verify(Secret("839201"))
        // Nothing on the disk is what scrypt makes of a PIN, or a hash of it.
        let record = try #require(await vault().names().first { $0.hasPrefix("signing.container.") })
        let stored = try #require(await vault().value(record)).value.revealBytes()
        let current = try #require(JSONValue.parse(stored)["slots"]?.array?.first?["current"])
        let salt = try #require(current["salt"]?.string.flatMap { Base64URL.decode($0) })
        let cost = try #require(current["kdf"]?.string.flatMap { PasswordCost($0) })
        let s = try #require(NormalizedPassword(Secret("839201"))).stretched(salt: salt, cost: cost).revealBytes()
        let files = try FileManager.default.subpathsOfDirectory(atPath: directory.path).compactMap {
            try? Data(contentsOf: directory.appending(path: $0))
        }
        #expect(files.count > 3)
        for file in files {
            for needle in [s, SHA2.sha256(s)] {
                #expect(file.range(of: Data(needle)) == nil)
                #expect(file.range(of: Data(Base64URL.encode(needle).utf8)) == nil)
            }
        }
        let keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys"))
        #expect(try await keys.keyNames().count == 3)
        #expect(try await device().container(container.id).delete())
        #expect(try await keys.keyNames().isEmpty)
        #expect(try await vault().names().isEmpty)
    }
}
