import Foundation
import X509

/// Every certificate is valid now. The library checks this too, but its answer does not name the date.
struct ValidityRule: PathRule {
    /// Whole seconds, as in certificates.
    private let now: Date

    init(now: Date) {
        self.now = Date(timeIntervalSince1970: now.timeIntervalSince1970.rounded(.down))
    }

    func failure(of path: UnverifiedCertificateChain) -> TrustFailure? {
        for (index, certificate) in path.enumerated() {
            let owner: TrustFailure.Owner = index == 0 ? .server : .authority(certificate.subject.description)
            if now > certificate.notValidAfter { return .expired(owner, certificate.notValidAfter) }
            if now < certificate.notValidBefore { return .notYetValid(owner, certificate.notValidBefore) }
        }
        return nil
    }
}
