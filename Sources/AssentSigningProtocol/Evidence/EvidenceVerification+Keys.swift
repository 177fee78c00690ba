extension EvidenceVerification {
    /// Which identity keys count, and the online keys that they certified.
    mutating func judgeServerKeys(trust: KeyThumbprint?) {
        let identities = bundle.identities
        let links = self.links()
        guard
            let root = trust.map({ trust in identities.firstIndex { $0.thumbprint == trust } })
                ?? identities.indices.last
        else {
            check(false, "identity", "The trusted identity key is not in the bundle.")
            return
        }
        report.root = identities[root].thumbprint
        // From the root on, each key is named by the one before it; back from it, by the one after, up to a time.
        var latest: [KeyThumbprint: Int?] = [identities[root].thumbprint: nil]
        for index in identities.indices.dropFirst(root + 1) {
            guard
                check(
                    links.next.contains {
                        $0.kid == identities[index - 1].thumbprint && $0.to == identities[index].thumbprint
                    },
                    "identity[\(index)]", "No next message leads to it from the key before it.")
            else { break }
            latest[identities[index].thumbprint] = .some(nil)
        }
        var until: Int?
        for index in identities.indices.prefix(root).reversed() {
            let back = links.previous.first {
                $0.kid == identities[index + 1].thumbprint && $0.to == identities[index].thumbprint
            }
            guard let back else {
                check(false, "identity[\(index)]", "No previous message leads back to it from the key after it.")
                break
            }
            until = min(until ?? back.until, back.until)
            latest[identities[index].thumbprint] = until
        }
        for (index, compact) in bundle.certificates.enumerated() {
            judgeCertificate(compact, "certs[\(index)]", latest)
        }
        if report.contradicted.isEmpty { report.established.append(.certified(identity: identities[root].thumbprint)) }
    }

    private mutating func judgeCertificate(_ compact: String, _ member: String, _ latest: [KeyThumbprint: Int?]) {
        guard let message = attempt(member, try UnverifiedMessage<KeyCertificate>(compact)) else { return }
        guard let identity = bundle.identities.first(where: { $0.thumbprint == message.kid }),
            let time = latest[message.kid]
        else {
            check(false, member, "It is not signed by an identity key that the trusted one leads to.")
            return
        }
        guard let certificate = attempt(member, try message.verified(with: identity))?.content else { return }
        guard check(StrictJSON.same(certificate.issuer, bundle.issuer), "\(member).iss", "It is another issuer's.")
        else { return }
        serverKeys.append(ServerKey(certificate: certificate, latest: time))
    }

    private struct Link {
        let kid: KeyThumbprint
        let to: KeyThumbprint
        let sequence: Int
        var until = 0
    }

    /// The messages that lead from identity key to identity key, verified.
    private mutating func links() -> (next: [Link], previous: [Link]) {
        var next: [Link] = []
        var previous: [Link] = []
        for (index, compact) in bundle.next.enumerated() {
            let message: SignedMessage<NextIdentity>? = identityMessage(compact, "next[\(index)]", \.issuer)
            guard let message else { continue }
            next.append(Link(kid: message.kid, to: message.content.jwk.thumbprint, sequence: message.content.sequence))
        }
        for (index, compact) in bundle.previous.enumerated() {
            let member = "previous[\(index)]"
            let message: SignedMessage<PreviousIdentity>? = identityMessage(compact, member, \.issuer)
            guard let message else { continue }
            let content = message.content
            let forward = next.first { $0.to == message.kid && $0.kid == content.jwk.thumbprint }
            guard
                check(
                    forward.map { $0.sequence == content.sequence } ?? true, "\(member).seq",
                    "It is not that of the next message that led here.")
            else { continue }
            previous.append(
                Link(
                    kid: message.kid, to: content.jwk.thumbprint, sequence: content.sequence, until: content.until))
        }
        for one in next {
            let before = next.first { $0.to == one.kid }
            check(before.map { $0.sequence + 1 == one.sequence } ?? true, "next", "The numbers of the keys have a gap.")
        }
        return (next, previous)
    }

    private mutating func identityMessage<Content: SignedContent>(
        _ compact: String, _ member: String, _ issuer: KeyPath<Content, String>
    ) -> SignedMessage<Content>? {
        let identities = bundle.identities
        let message = attempt(
            member, try SignedMessage<Content>(compact, keys: { kid in identities.first { $0.thumbprint == kid } }))
        guard let message else { return nil }
        let isOwn = StrictJSON.same(message.content[keyPath: issuer], bundle.issuer)
        return check(isOwn, "\(member).iss", "It is another issuer's.") ? message : nil
    }
}
