import AssentCore
import AssentSigningProtocol
import Foundation
import Logging

/// How containers stand at the server, what is said of them there, and how they end.
struct Containers: Sendable {
    let parts: DeviceParts

    // MARK: Status

    /// Takes over a signed status. `asked` is the container as it was when the server was asked. Only a signed status
    /// ends a container.
    ///
    /// - Throws: what the store and the key provider throw.
    @discardableResult
    func adopt(
        _ status: ContainerStatus, of asked: ContainerRecord, also change: (inout ContainerRecord) -> Void = { _ in }
    ) async throws -> ContainerRecord {
        let record = try await parts.records.modify(asked.id) { record in
            record.adopt(status, askedAfter: asked.statuses)
            change(&record)
            if status.hasEnded { record.ended = true }
        }
        if record.ended { try await removeAll(of: record) }
        return record
    }

    func status(of id: SigningID) async throws -> SigningContainerStatus {
        let record = try await parts.records.load(id)
        let status = try await parts.calls.ask(.status, of: record, read: parts.calls.status)
        try await adopt(status, of: record)
        return SigningContainerStatus(status)
    }

    func update(
        _ id: SigningID, name: String? = nil, pushID: String? = nil, properties: [String: String]? = nil
    ) async throws {
        try Self.check(name: name, pushID: pushID)
        let body = UpdateBody(name: name, pushId: pushID, properties: properties)
        // What the server would not read is not sent.
        guard (try? UpdateBody(plaintext: body.encoded())) != nil else {
            throw SigningError(
                .invalidArgument, "Properties are at most 16 texts of at most 256 characters that can be shown.")
        }
        let record = try await parts.records.load(id)
        let status = try await parts.calls.ask(Request(.update, body), of: record, read: parts.calls.status)
        try await parts.records.modify(id) { record in
            if let name { record.name = name }
            if let pushID { record.pushID = pushID }
            if let properties { record.properties = properties }
        }
        try await adopt(status, of: record)
    }

    static func check(name: String?, pushID: String?) throws(SigningError) {
        if let name { try SigningError.check(name, 1...128, at: "name") }
        guard pushID.map({ $0.utf8.count <= 1024 && $0.utf8.allSatisfy(\.isASCIIPrintable) }) ?? true else {
            throw SigningError(.invalidArgument, "A push address has at most 1024 printable ASCII characters.")
        }
    }

    // MARK: The end

    func delete(_ id: SigningID, reason: String) async throws -> Bool {
        try SigningError.check(reason, 1...1000, at: "reason")
        let record = try await parts.records.modify(id) { $0.deletion = $0.deletion ?? reason }
        try await removeKeys(of: record)
        do {
            try await sendDeletion(id)
            return true
        } catch let error as SigningError {
            // Whatever the server says without a signature, the call is repeated until it signs that this has ended.
            parts.logger.info("the server could not be told of a deletion", metadata: ["code": "\(error.code)"])
            return false
        }
    }

    func sendDeletion(_ id: SigningID) async throws {
        let record = try await parts.records.load(id)
        try await removeKeys(of: record)
        let body = DeleteBody(reason: record.deletion ?? "USER")
        let status = try await parts.calls.ask(Request(.delete, body), of: record, read: parts.calls.status)
        guard status.hasEnded else {
            throw SigningError(.serverAuthentication, "The server has not ended the container.")
        }
        try await adopt(status, of: record)
    }

    /// Removes a container of which the server, or the app for an unfinished one, said that it has ended.
    func removeAll(of record: ContainerRecord) async throws {
        let (records, renewals) = (parts.records, parts.renewals)
        try await removeKeys(of: record)
        if let renewal = try await records.renewal(of: record.id) {
            if record.keyID == renewal.next.keyID {
                try await renewals.removeOldKeys(renewal)
            } else {
                try await renewals.giveUp(renewal)
            }
        }
        try await parts.keys.removeKey(named: record.keyName(.device, ""))
        if let did = record.did {
            try await records.removeDecisions(of: did)
            try await records.removeOneTimeKeys(of: did)
        }
        try await records.remove(record.id)
    }

    /// Removes all keys but the device key, and that of a renewal of which the server has keys.
    private func removeKeys(of record: ContainerRecord) async throws {
        let records = parts.records
        await parts.memory.forget(record.id)
        await parts.memory.forgetNewKeys(record.id)
        if !record.slots.isEmpty {
            try await records.modify(record.id) { record in
                for index in record.slots.indices { record.slots[index].shred() }
            }
        }
        let offer = try record.offerContent()
        if offer?.slots.isEmpty == false { try await parts.keys.removeKey(named: record.sealingKeyName) }
        try await parts.provider.remove(offer, record, withDeviceKey: false)
        if let did = record.did { try await records.removeOneTimeKeys(of: did) }
        guard let renewal = try await records.renewal(of: record.id) else { return }
        if renewal.next.phase.echo == nil {
            try await parts.renewals.giveUp(renewal)
        } else {
            try await parts.renewals.removeKeys(of: renewal)
        }
    }
}

extension ContainerStatus {
    /// Whether the container's id will never be used again.
    var hasEnded: Bool { state == .revoked || state == .void }
}

extension SigningContainerStatus {
    init(_ status: ContainerStatus) {
        self.init(
            state: status.state, pending: status.pending,
            approvalsFrom: Date(timeIntervalSince1970: TimeInterval(status.approvalsFrom)),
            expiresAt: Date(timeIntervalSince1970: TimeInterval(status.expiresAt)),
            passwords: status.slots)
    }
}
