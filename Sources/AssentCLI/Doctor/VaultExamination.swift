import Assent
import AssentConfiguration
import AssentCore
import Foundation

/// Looks at a profile's vault without its key: what guards it, what that does not do, and what else could.
struct VaultExamination {
    /// What was found.
    struct Result {
        var findings: [Diagnosis] = []

        /// All that could guard the vault on this machine.
        var providers: [KeyProviderStatus] = []

        /// What else can keep secrets on this machine, for programs that use the SDK.
        var stores: [SecretStoreStatus] = []

        /// The vault, as it says itself; `nil` when there is none, or not the one that was chosen.
        var json: JSONValue?
    }

    let profile: String
    var places = Places()

    func examined() async -> Result {
        let place: VaultPlace
        do {
            place = try VaultPlace(profile: profile, places: places)
        } catch {
            return Result(findings: [Diagnosis(.problem, "vault of profile \(profile): \(error.explanation)")])
        }
        var result = Result()
        do {
            let info = try FileVault.inspect(place.directory)
            result.findings = findings(info, place)
            if let info, place.keyProvider.matches(info.claimed) { result.json = json(info.claimed, place.keyProvider) }
        } catch {
            result.findings = [Diagnosis(.problem, "vault of profile \(profile): \(error.explanation)")]
        }
        if let pending = place.pending {
            result.findings.append(
                Diagnosis(
                    .problem,
                    "a change of key to \(pending.keyProvider.name) was interrupted; \(place.keyProvider.name) guards the vault of "
                        + "profile \(profile). Finish or take it back with: assent vault check"))
        }
        result.stores = [await SecretStoreStatus.kernelKeyring()]
        result.providers = await KeyProviderExamination(place: place, hasVault: result.json != nil).statuses()
        return result
    }

    private func findings(_ info: UnverifiedVaultInfo?, _ place: VaultPlace) -> [Diagnosis] {
        guard let info else {
            return [
                Diagnosis(
                    .fine,
                    "profile \(profile) has no vault yet: assent login makes one, guarded by \(place.keyProvider.name)")
            ]
        }
        guard place.keyProvider.matches(info.claimed) else {
            return [
                Diagnosis(
                    .problem,
                    "the vault of profile \(profile) says that it is guarded in another way "
                        + "(\(info.claimed.protection.rawValue)) than you chose (\(place.keyProvider.name)): was it exchanged? "
                        + "Restore \(place.directory.path), or remove it and sign in again")
            ]
        }
        return info.claimed.lines.map { Diagnosis(.fine, "vault of profile \(profile): \($0)") }
    }

    private func json(_ info: VaultInfo, _ keyProvider: any KeyProviderKind) -> JSONValue {
        guard case .object(var members) = info.json else { return info.json }
        members["keyProvider"] = .string(keyProvider.name)
        return .object(members)
    }
}
