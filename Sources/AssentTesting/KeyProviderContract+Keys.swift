import AssentCore
import Crypto
import Foundation

extension KeyProviderContract {
    static let signingRules: [Rule] = [
        Rule("A signing key signs, and only what it was given") { open in
            let provider = try await open()
            let key = try await provider.makeSigningKey(named: "contract-key", algorithm: .es256)
            try expect(key.algorithm == .es256, "the algorithm is another")
            let messages: [[UInt8]] = [[], [0], Array("what is signed".utf8), [UInt8](repeating: 7, count: 1 << 20)]
            for message in messages {
                let signature = try await key.signature(for: message)
                try expect(signature.count == 64, "the signature is not r ‖ s of 64 bytes")
                try expect(verifies(signature, message, key), "a signature of \(message.count) bytes does not verify")
                try expect(!verifies(signature, message + [1], key), "the signature is good for another message")
            }
            try await provider.removeKey(named: "contract-key")
        },
        Rule("A signing key is found again, by others too, and is still the same") { open in
            let made = try await open().makeSigningKey(named: "contract-key", algorithm: .es256)
            let provider = try await open()
            guard let found = try await provider.signingKey(named: "contract-key") else {
                throw Violation("the key was lost")
            }
            try expect(found.publicKeyInfo == made.publicKeyInfo, "the public part is another")
            try expect(found.algorithm == .es256, "the algorithm was forgotten")
            let message = Array("later".utf8)
            try expect(verifies(try await found.signature(for: message), message, made), "it does not sign as before")
            try expect(
                verifies(try await made.signature(for: message), message, found), "the first handle stopped working")
            try await provider.removeKey(named: "contract-key")
        },
        Rule("A name is used once") { open in
            let provider = try await open()
            let key = try await provider.makeSigningKey(named: "contract-key", algorithm: .es256)
            for other in [provider, try await open()] {
                try await expectError(.keyExists) {
                    try await other.makeSigningKey(named: "contract-key", algorithm: .es256)
                }
            }
            let agreement = try await provider.makeAgreementKey(named: "contract-key")
            try await expectError(.keyExists) { try await provider.makeAgreementKey(named: "contract-key") }
            try expect(
                try await provider.signingKey(named: "contract-key")?.publicKeyInfo == key.publicKeyInfo,
                "the refusal changed the signing key")
            try expect(
                try await provider.agreementKey(named: "contract-key")?.publicPoint == agreement.publicPoint,
                "the refusal changed the agreement key")
            try await provider.removeKey(named: "contract-key")
        },
        Rule("Of many that make one key at once, one does") { open in
            let wins = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for _ in 0..<6 {
                    let provider = try await open()
                    group.addTask {
                        do {
                            let key = try await provider.makeSigningKey(named: "contract-key", algorithm: .es256)
                            return key.publicKeyInfo
                        } catch let error as KeyProviderError where error.code == .keyExists {
                            return nil
                        }
                    }
                }
                return try await group.reduce(into: [[UInt8]]()) { wins, key in if let key { wins.append(key) } }
            }
            try expect(wins.count == 1, "\(wins.count) of 6 made the key")
            let provider = try await open()
            try expect(
                try await provider.signingKey(named: "contract-key")?.publicKeyInfo == wins.first,
                "the key that stayed is not the one that was given out")
            try await provider.removeKey(named: "contract-key")
        },
        Rule("Keys sign in parallel") { open in
            let provider = try await open()
            let key = try await provider.makeSigningKey(named: "contract-key", algorithm: .es256)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<16 {
                    group.addTask {
                        let message = Array("message \(number)".utf8)
                        let found = try await provider.signingKey(named: "contract-key")
                        let signature = try await (found ?? key).signature(for: message)
                        try expect(verifies(signature, message, key), "parallel signatures were mixed up")
                    }
                }
                try await group.waitForAll()
            }
            try await provider.removeKey(named: "contract-key")
        },
        Rule("A request that the provider does not know is refused and makes nothing") { open in
            let provider = try await open()
            for name in ["none", "HS256", "ES256K", "", "es256"] {
                try await expectError(.unsupported) {
                    try await provider.makeSigningKey(
                        named: "contract-key", algorithm: SignatureAlgorithm(rawValue: name))
                }
            }
            try expect(try await provider.signingKey(named: "contract-key") == nil, "a key was made all the same")
        },
    ]

    static let agreementRules: [Rule] = [
        Rule("An agreement key agrees with a peer, leading zeros included") { open in
            let provider = try await open()
            let key = try await provider.makeAgreementKey(named: "contract-key")
            try expect(key.publicPoint.count == 65 && key.publicPoint.first == 4, "the point is not uncompressed")
            let own = try P256.KeyAgreement.PublicKey(x963Representation: key.publicPoint)
            var peers = [P256.KeyAgreement.PrivateKey()]
            while peers.count < 2 {
                let peer = P256.KeyAgreement.PrivateKey()
                let secret = try peer.sharedSecretFromKeyAgreement(with: own)
                if secret.withUnsafeBytes({ $0.first == 0 }) { peers.append(peer) }
            }
            let found = try await open().agreementKey(named: "contract-key")
            for peer in peers {
                let expected = try peer.sharedSecretFromKeyAgreement(with: own).withUnsafeBytes { Secret(bytes: $0) }
                let point = Array(peer.publicKey.x963Representation)
                try expect(try await key.sharedSecret(with: point) == expected, "the secret is another")
                try expect(try await found?.sharedSecret(with: point) == expected, "the key was lost or is another")
            }
            try await provider.removeKey(named: "contract-key")
        },
        Rule("A point that is not on the curve is refused, and the key goes on") { open in
            let provider = try await open()
            let key = try await provider.makeAgreementKey(named: "contract-key")
            let peer = P256.KeyAgreement.PrivateKey()
            let point = Array(peer.publicKey.x963Representation)
            var offCurve = point
            offCurve[64] ^= 1
            let bad: [[UInt8]] = [
                [], [0], [4], offCurve, Array(point.dropLast()), point + [0], Array(point.dropFirst()),
                [5] + point.dropFirst(), [4] + [UInt8](repeating: 0, count: 64),
                [4] + [UInt8](repeating: 255, count: 64),
                Array(peer.publicKey.compressedRepresentation), [UInt8](repeating: 4, count: 1 << 16),
            ]
            for point in bad {
                try await expectError(.invalidInput) { try await key.sharedSecret(with: point) }
            }
            let own = try P256.KeyAgreement.PublicKey(x963Representation: key.publicPoint)
            let expected = try peer.sharedSecretFromKeyAgreement(with: own).withUnsafeBytes { Secret(bytes: $0) }
            try expect(try await key.sharedSecret(with: point) == expected, "the key does not work any more")
            try await provider.removeKey(named: "contract-key")
        },
    ]

    static let counterRules: [Rule] = [
        Rule("A rollback counter only grows, for others too, or there is none at all") { open in
            let provider = try await open()
            try expect(
                try await provider.rollbackCounter(named: "contract-counter") == nil, "a counter came from nowhere")
            guard let counter = try await provider.makeRollbackCounter(named: "contract-counter") else { return }
            try await RollbackCounterContract.check(counter)
            let before = try await counter.value()
            guard let found = try await open().rollbackCounter(named: "contract-counter") else {
                throw Violation("the counter was lost")
            }
            try expect(try await found.value() == before, "the counter is another after it was found again")
            try expect(try await found.increment() == before + 1, "an increment did not add one")
            try expect(try await counter.value() == before + 1, "the two handles count apart")
            try await expectError(.keyExists) { try await provider.makeRollbackCounter(named: "contract-counter") }
            try await provider.removeKey(named: "contract-counter")
            try expect(
                try await provider.rollbackCounter(named: "contract-counter") == nil, "the removed counter is there")
            if let again = try await provider.makeRollbackCounter(named: "contract-counter") {
                try expect(try await again.value() > before, "a counter made again starts below the removed one")
                try await provider.removeKey(named: "contract-counter")
            }
        }
    ]

    static func verifies(_ signature: [UInt8], _ message: [UInt8], _ key: any SigningKey) -> Bool {
        guard let publicKey = try? P256.Signing.PublicKey(derRepresentation: key.publicKeyInfo),
            let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
        else { return false }
        return publicKey.isValidSignature(signature, for: message)
    }
}
