import AssentCore
import AssentSigningProtocol
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentSigning

/// A device's vault and key file as an earlier version wrote them (`Tests/StoredData/device.json`): `assent device` of
/// commit 3704018e enrolled with `assent serve`, whose realm wanted a local PIN and gave a key for codes by a counter.
/// Two codes were taken; one enrolment ended at the question for a PIN, of one the digits were never typed, one has new
/// keys under way after a reset, and one decision was signed and found no server. The keys were made for this.
@Suite("A signing device's store that an earlier version has written")
struct StoredDeviceTests {
    /// Nobody can be reached.
    private struct NoNetwork: HTTPTransport {
        let asked = Locked<[String]>([])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            asked.withLock { $0.append(call.request.path ?? "") }
            throw HTTPTransportError(.connectFailed, "Nothing listens there.")
        }
    }

    /// The store, unpacked for one test.
    private struct Stored {
        let device: SigningDevice
        let keys: SoftwareKeyProvider
        let network = NoNetwork()
        let pin: Secret
        let id: String
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

        init() async throws {
            let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            let data = try JSONValue.parse(Array(Data(contentsOf: tests.appending(path: "StoredData/device.json"))))
            (pin, id) = (Secret(try #require(data["pin"]?.string)), try #require(data["container"]?.string))
            let files = FileManager.default
            for folder in [directory, directory.appending(path: "signing")] {
                try files.createDirectory(
                    at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            }
            for file in try #require(data["files"]?.object).members {
                let content = try #require(file.value.string.flatMap { Data(base64Encoded: $0) })
                #expect(
                    files.createFile(
                        atPath: directory.appending(path: file.name).path, contents: content,
                        attributes: [.posixPermissions: 0o600]))
            }
            keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "signing.key"))
            let vault = try await FileVault.open(
                directory.appending(path: "signing"), store: "default", keys: .software(keys))
            device = SigningDevice(store: vault, keys: keys, transport: network)
        }

        func container() async throws -> SigningContainer { try await device.container(id) }

        func remove() { try? FileManager.default.removeItem(at: directory) }
    }

    @Test("Each record is read as it is: containers, enrolments, new keys under way, a decision, a key for codes")
    func read() async throws {
        let stored = try await Stored()
        defer { stored.remove() }
        let device = stored.device
        let containers = try await device.containers()
        #expect(containers.map(\.name) == ["Stored laptop", "Never confirmed", "Being renewed"])
        #expect(containers.map(\.state) == [.active, .unconfirmed, .unconfirmed])
        #expect(containers.map(\.digits) == [nil, "8607 1404", "8859 5761"])
        let container = try #require(containers.first)
        #expect(container.id == stored.id && container.userName == "ana" && container.serial == "941268474940")
        #expect(container.keys.map(\.usage) == [.device, .transport, .sign, .auth])
        #expect(container.keys.map(\.password) == [nil, nil, .signing, nil])
        let password = try #require(container.password(.signing))
        #expect(password.mode == .local && password.lock == .local(.counter(max: 3)) && password.remaining == 3)
        #expect(try await container.oneTimeKeys().map(\.label) == ["bank"])
        #expect(try await device.unfinishedEnrolments().count == 1)
        #expect(try await device.unreceiptedTransactions() == ["igCOxGxXCvV5YCtol5gUVg"])
        let renewal = try #require(try await device.parts.records.renewal(of: containers[2].record))
        #expect(renewal.hasCode && renewal.next.phase.isConfirmed && renewal.endorsements.count == 1)
        #expect(try renewal.next.enrolmentValue()?.digits == "1563 5331")
        #expect(renewal.next.keyID != nil)
        #expect(try renewal.oldOfferContent().keys.count == 5)
        for container in containers {
            let record = try await device.parts.records.load(container.record)
            #expect(try await device.parts.provider.list(record).map(\.kid.text) == container.keys.map(\.id))
        }
        #expect(stored.network.asked.withLock { $0 }.isEmpty)
    }

    @Test("It goes on: the PIN opens its keys and is changed, codes come behind the last one, what waits is sent")
    func goOn() async throws {
        let stored = try await Stored()
        defer { stored.remove() }
        let (device, new) = (stored.device, Secret("839201"))
        let error = await #expect(throws: SigningError.self) {
            try await stored.container().password(.signing)?.verify(new)
        }
        #expect(error?.code == .wrongPassword && error?.remaining == 2)
        let password = try #require(try await stored.container().password(.signing))
        try await password.verify(stored.pin)
        try await password.change(from: stored.pin, to: new)
        try await password.verify(new)
        await #expect(throws: SigningError(.invalidPassword)) { try await password.change(from: new, to: stored.pin) }
        let codes = [try await stored.container().oneTimeCode(), try await stored.container().oneTimeCode()]
        #expect(codes.map { $0.code.reveal() } == ["657305", "503141"])
        #expect(stored.network.asked.withLock { $0 }.isEmpty)

        // The decision, and whether the new keys are the container's.
        await #expect(throws: SigningError(.remote)) { try await device.sendQueued() }
        #expect(stored.network.asked.withLock { $0 }.count == 2)
        #expect(try await device.unreceiptedTransactions().count == 1)
        let unfinished = try #require(try await device.unfinishedEnrolments().first)
        try await device.abandonEnrolment(unfinished.id)
        #expect(try await device.unfinishedEnrolments().isEmpty)
        #expect(try await stored.container().delete() == false)
        #expect(try await device.containers().map(\.name) == ["Never confirmed", "Being renewed"])
    }
}
