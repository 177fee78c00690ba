import AssentCore
import AssentSigningProtocol
import Foundation
import Logging

extension SigningDevice {
    /// Verifies a reply `status` of this container.
    func status(_ received: Received) async throws -> ContainerStatus {
        let status = try await verified(received.text, received, as: ContainerStatus.self).content
        guard status.did == received.record.did else {
            throw SigningProtocolError(.wrongAudience, "The status is that of another container.", member: "did")
        }
        return status
    }

    /// Takes over a signed status. Only this ends a container.
    func adopt(
        _ status: ContainerStatus, _ id: SigningID, also change: (inout ContainerRecord) -> Void = { _ in }
    ) async throws {
        let record = try await records.modify(id) { record in
            record.adopt(status)
            change(&record)
            if status.state == .revoked || status.state == .void { record.ended = true }
        }
        if record.ended { try await removeAll(of: record) }
    }

    func status(of id: SigningID) async throws -> SigningContainerStatus {
        let status = try await call(id, .status, EmptyBody()) { try await self.status($0) }
        try await adopt(status, id)
        return SigningContainerStatus(
            state: status.state, pending: status.pending,
            approvalsFrom: Date(timeIntervalSince1970: TimeInterval(status.approvalsFrom)),
            expiresAt: Date(timeIntervalSince1970: TimeInterval(status.expiresAt)),
            passwords: status.slots.map { slot in
                SigningPasswordStatus(
                    slot: slot.slot, state: slot.state, remaining: slot.tries, spare: slot.spare,
                    retryAfter: slot.wait)
            })
    }

    func update(
        _ id: SigningID, name: String? = nil, pushID: String? = nil, properties: [String: String]? = nil
    ) async throws {
        try Self.check(name: name, pushID: pushID)
        if let properties {
            let isFine =
                properties.count <= 16
                && properties.allSatisfy { name, text in
                    UpdateBody.isPropertyName(name) && (try? ShownText.check(text, 0...256, at: "properties")) != nil
                }
            guard isFine else {
                throw SigningError(
                    .invalidArgument, "Properties are at most 16 texts of at most 256 characters that can be shown.")
            }
        }
        let body = UpdateBody(name: name, pushId: pushID, properties: properties)
        let status = try await call(id, .update, body) { try await self.status($0) }
        try await records.modify(id) { record in
            if let name { record.name = name }
            if let pushID { record.pushID = pushID }
            if let properties { record.properties = properties }
        }
        try await adopt(status, id)
    }

    func delete(_ id: SigningID, reason: String) async throws -> Bool {
        do {
            try ShownText.check(reason, 1...1000, at: "reason")
        } catch {
            throw SigningError(.invalidArgument, error.detail)
        }
        let record = try await records.modify(id) { $0.deletion = $0.deletion ?? reason }
        try await removeKeys(of: record)
        do {
            try await sendDeletion(id)
            return true
        } catch let error as SigningError {
            // Whatever the server says without a signature, the call is repeated until it signs that this has ended.
            logger.info("the server could not be told of a deletion", metadata: ["code": "\(error.code)"])
            return false
        }
    }

    func sendDeletion(_ id: SigningID) async throws {
        let record = try await records.load(id)
        try await removeKeys(of: record)
        let body = DeleteBody(reason: record.deletion ?? "USER")
        let status = try await call(id, .delete, body) { try await self.status($0) }
        guard status.state == .revoked || status.state == .void else {
            throw SigningError(.serverAuthentication, "The server has not ended the container.")
        }
        try await adopt(status, id)
    }
}
