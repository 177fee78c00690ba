import AssentCore
import Foundation
import Testing

@testable import AssentJOSE

@Suite("Headers of proofs that are remembered")
struct DPoPHeadersTests {
    private static let uri = "https://rs.example/a"

    private let headers = DPoPHeaders(limit: 8)

    private func proof(_ key: any SigningKey) async throws -> String {
        try await DPoPProof.make(method: "GET", uri: Self.uri, key: key, clock: DPoPProofTests.clock)
    }

    @discardableResult
    private func verify(_ proof: String) throws(JOSEError) -> DPoPProof {
        try DPoPProof.verifyUndated(proof, method: "GET", uri: Self.uri, headers: headers)
    }

    @Test(
        "Each proof of a remembered key is verified",
        arguments: [.es256, .es384, .ps256, .edDSA] as [SignatureAlgorithm])
    func known(algorithm: SignatureAlgorithm) async throws {
        let key = try TestKeys.key(algorithm)
        let first = try verify(try await proof(key))
        #expect(headers.count == 1)
        let second = try await proof(key)
        let again = try verify(second)
        #expect(again.thumbprint == first.thumbprint && again.key == first.key && again.jti != first.jti)
        // The header is known; what is behind it is another key's, another proof's, or too short.
        let parts = second.split(separator: ".").map(String.init)
        let other = try await proof(SoftwareSigningKey.generate(.es256)).split(separator: ".").map(String.init)
        for forged in [
            "\(parts[0]).\(other[1]).\(parts[2])", "\(parts[0]).\(parts[1]).\(other[2])",
            "\(parts[0]).\(parts[1]).AAAA",
            "\(parts[0]).\(parts[1]).",
        ] {
            #expect(throws: JOSEError(.invalidSignature)) { try verify(forged) }
        }
        #expect(headers.count == 1)
    }

    @Test("A header whose proof was not signed by its key is not remembered")
    func unsigned() async throws {
        let parts = try await proof(SoftwareSigningKey.generate(.es256)).split(separator: ".").map(String.init)
        let other = try await proof(SoftwareSigningKey.generate(.es256)).split(separator: ".").map(String.init)
        #expect(throws: JOSEError(.invalidSignature)) { try verify("\(parts[0]).\(other[1]).\(other[2])") }
        #expect(headers.count == 0)
    }

    @Test("No more than the limit are remembered, and those that were forgotten are still good")
    func bounded() async throws {
        var proofs: [String] = []
        for _ in 0..<30 {
            proofs.append(try await proof(SoftwareSigningKey.generate(.es256)))
            try verify(proofs[proofs.count - 1])
            #expect((1...8).contains(headers.count))
        }
        for proof in proofs { try verify(proof) }
    }

    @Test("A header with another algorithm than the accepted ones is refused, however often it comes")
    func refused() async throws {
        let proof = try await proof(TestKeys.key(.es384))
        let headers = DPoPHeaders([.es256])
        for _ in 0..<2 {
            #expect(throws: JOSEError(.algorithmNotAllowed)) {
                try DPoPProof.verifyUndated(proof, method: "GET", uri: Self.uri, headers: headers)
            }
        }
        #expect(headers.count == 0)
    }
}
