import AssentConfiguration
import AssentCore
import AssentEngine

/// What users approve without seeing it.
extension ServerExamination {
    /// The policies and templates that leave out a whole body, or a whole query, of what they show.
    static func unseen(_ configuration: ServerConfiguration) -> [Diagnosis] {
        configuration.realms.flatMap { realm -> [Diagnosis] in
            let policies = realm.policySets.flatMap { set in
                set.policies.filter { $0.leftOut.contains(where: \.isWhole) }
                    .map { "the policy \($0.name) of \(realm.name), \(set.name)" }
            }
            let templates = (realm.signing?.templates ?? [:]).filter { $0.value.leftOut.contains(where: \.isWhole) }
            return (policies + templates.keys.sorted().map { "the signing template \($0) of \(realm.name)" }).map {
                Diagnosis(
                    .note,
                    "\($0) leaves out everything that it does not show (notShown: / or ?): users approve it unseen")
            }
        }
    }
}
