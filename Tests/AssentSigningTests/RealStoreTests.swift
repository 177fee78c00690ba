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
}
