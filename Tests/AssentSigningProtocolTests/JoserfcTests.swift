import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Crypto
import Foundation
import TestSupport
import Testing

/// The Python that has joserfc, where `Scripts/setup.sh` has put it.
private enum Joserfc {
    static let interpreter = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: ".build/peers/bin/python").path

    static let mustRun =
        ProcessInfo.processInfo.environment["CI"] != nil
        || FileManager.default.isExecutableFile(atPath: interpreter)
}

@Suite(
    "Transaction signing: sealed messages against joserfc",
    .enabled(if: Joserfc.mustRun, "joserfc is not installed"))
struct JoserfcTests {
    private static let program = """
        import json, sys
        from joserfc import jwe, jws
        from joserfc.errors import JoseError
        from joserfc.jwk import ECKey

        job = json.load(sys.stdin)
        transport, signer = ECKey.import_key(job["transport"]), ECKey.import_key(job["signer"])

        def opened(compact):
            try:
                inside = jwe.decrypt_compact(compact, transport, algorithms=["ECDH-ES", "A256GCM"]).plaintext
                return jws.deserialize_compact(inside, signer, algorithms=["ES256"]).payload.decode()
            except (JoseError, ValueError):
                return None

        signed = jws.serialize_compact(job["signedHeader"], job["content"], signer, algorithms=["ES256"])
        made = jwe.encrypt_compact(job["sealedHeader"], signed, transport, algorithms=["ECDH-ES", "A256GCM"])
        json.dump({"opened": [opened(one) for one in job["messages"]], "made": made}, sys.stdout)
        """

    @Test("joserfc opens and verifies a reply that is made here, one that it makes is good here, and no changed one is")
    func bothWays() async throws {
        let vectors = try Vectors.load()
        let fetched = try vectors.message("fetched", as: Fetched.self).content
        let content = String(decoding: fetched.encoded(), as: UTF8.self)
        let (sender, recipient) = (vectors.issuer, "device")
        let (signing, agreement) = (P256.Signing.PrivateKey(), P256.KeyAgreement.PrivateKey())
        let signer = try SoftwareSigningKey(algorithm: .es256, privateKey: Secret(bytes: signing.derRepresentation))
        let transport = try SoftwareAgreementKey(privateKey: Secret(bytes: agreement.derRepresentation))
        let (signerKey, transportKey) = (try ProtocolKey(signer), try ProtocolKey(transport))

        func sealed(_ compact: String) throws -> String {
            try SealedEnvelope.seal(
                Array(compact.utf8), to: transportKey, content: .reply, sender: sender, recipient: recipient)
        }
        func changed(_ compact: String, part: Int) throws -> String {
            var parts = try CompactParts(compact)
            parts.parts[part][0] ^= 1
            return parts.text
        }
        func secret(_ key: ProtocolKey, _ scalar: Data) throws -> JSONValue {
            var jwk = try #require(key.json.object)
            jwk["d"] = .string(Base64URL.encode(Array(scalar)))
            return .object(jwk)
        }
        func name(_ text: String) -> JSONValue { .string(Base64URL.encode(Array(text.utf8))) }

        let signed = try await SignedMessage.sign(fetched, with: signer).compact
        let good = try sealed(signed)
        let messages = [good, try changed(good, part: 3), try sealed(changed(signed, part: 2))]
        let job: JSONValue = [
            "transport": try secret(transportKey, agreement.rawRepresentation),
            "signer": try secret(signerKey, signing.rawRepresentation), "content": .string(content),
            "messages": .array(messages.map(JSONValue.string)),
            "signedHeader": [
                "alg": "ES256", "typ": .string(Fetched.type.rawValue), "kid": .string(signerKey.thumbprint.text),
            ],
            "sealedHeader": [
                "alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT", "kid": .string(transportKey.thumbprint.text),
                "apu": name(sender), "apv": name(recipient),
            ],
        ]
        let process = try FinishedProcess.run(
            "/usr/bin/timeout", ["\(Patience.seconds)", Joserfc.interpreter, "-c", Self.program],
            input: job.serializedBytes())
        try #require(process.status == 0, "\(process.complaints)")
        let seen = try JSONValue.parse(process.output)
        #expect(seen["opened"] == [.string(content), .null, .null])

        func read(_ compact: String) async throws -> String {
            let inside = try await SealedEnvelope(compact).opened(
                with: transport, content: .reply, sender: sender, recipient: recipient)
            let message = try SignedMessage<Fetched>(String(decoding: inside, as: UTF8.self), key: signerKey)
            return String(decoding: message.content.encoded(), as: UTF8.self)
        }
        let made = try #require(seen["made"]?.string)
        #expect(try await read(made) == content)
        for part in [0, 2, 3, 4] {
            let other = try changed(made, part: part)
            await #expect(throws: (any Error).self, "part \(part)") { try await read(other) }
        }
    }
}
