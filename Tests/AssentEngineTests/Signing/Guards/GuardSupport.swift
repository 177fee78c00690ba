import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

extension SigningWorld {
    func admin() async throws -> SigningCaller {
        SigningCaller(try await TransactionFixture.signIn("admin", roles: [.admin], base.context))
    }

    /// Writes a container's state past all rules, as another node may have done a moment ago.
    func set(_ assignments: SQL, of did: SigningID) async throws {
        _ = try await base.database.run(
            SQLStatement("UPDATE signing_containers SET \(assignments) WHERE did = \(did.text)", expecting: .exactly(1))
        )
    }

    /// The record of a container, as it is stored now.
    func record(_ did: SigningID) async throws -> SigningContainerRecord {
        try #require(try await provider.devices.find(did))
    }

    /// Moves the clock to the beginning of a window in which attempts are counted together.
    func startWindow(_ seconds: Int64) {
        base.clock.advance(by: Double(seconds - provider.now % seconds))
    }

    /// What a call from that address is answered with; `nil` for success.
    func code(
        _ call: DeviceCall, proof: String?, body: String, from address: String
    ) async throws -> SigningErrorCode? {
        try await signingCode {
            _ = try await provider.door.answer(call, proof: proof, body: Array(body.utf8), address: address)
        }
    }
}

extension TestDevice {
    /// What a call is answered with; `nil` for success.
    func code(_ path: String, _ did: SigningID, _ body: some MessagePart) async throws -> String? {
        try await refusal { _ = try await call(path, did, body) }
    }

    /// A call whose proof has that id.
    func send(
        _ path: String, _ did: SigningID, _ body: some MessagePart, jti: SigningID
    ) async throws -> String? {
        let sealed = try await sealed(body.encoded(), sender: did.text)
        let proof = try await proof(did, path: path, body: sealed, jti: jti)
        return try await refusal { _ = try await issuer.send(path, proof: proof, body: sealed) }
    }

    func key(_ label: String) throws -> SoftwareSigningKey {
        try #require(keys.withLock { $0[label] })
    }
}

extension LowRenewal {
    /// The message that ends a renewal, with the word of the old device key and of the old keys with these labels.
    func body(_ old: TestDevice, by labels: String...) async throws -> CompleteBody {
        var endorsements = [try await endorsement(by: old.deviceKey)]
        for label in labels { endorsements.append(try await endorsement(by: try old.key(label))) }
        return CompleteBody(enrol: enrol, endorsements: endorsements)
    }
}

extension String {
    /// A signed message with one bit of its signature changed.
    var withAnotherSignature: String {
        var parts = split(separator: ".").map(String.init)
        parts[2] = (parts[2].first == "A" ? "B" : "A") + parts[2].dropFirst()
        return parts.joined(separator: ".")
    }
}
