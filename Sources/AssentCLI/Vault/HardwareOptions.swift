import ArgumentParser

/// The options that say which token or TPM holds keys.
struct HardwareOptions: ParsableArguments {
    @Option(name: .long, help: "The path of the token's PKCS#11 module (of pkcs11).", completion: .file())
    var module: String?

    @Option(name: .long, help: "The token's label (of pkcs11).")
    var token: String?

    @Option(
        name: .long, help: "How to reach the TPM, as tpm2-tools take it (of tpm). Default: \(TPMKind().tcti).")
    var tcti: String?

    @Option(
        name: .long,
        help: "The handle of a persistent storage key, such as 0x81000001, when the owner made one (of tpm).")
    var tpmParent: String?

    @Flag(
        name: .long,
        help: "No PIN: everyone who may use this TPM and can read the files can use the keys (of tpm).")
    var withoutPin = false

    /// The names of the options that were given.
    var given: Set<String> {
        let all: [(String, Bool)] = [
            ("module", module != nil), ("token", token != nil), ("tcti", tcti != nil),
            ("tpm-parent", tpmParent != nil), ("without-pin", withoutPin),
        ]
        return Set(all.filter(\.1).map(\.0))
    }

    /// The kind that `--keys` has named, with these options.
    ///
    /// - Parameters:
    ///   - target: what `--keys` has named.
    ///   - standardFile: the path of the key file of `--keys key-file`.
    /// - Returns: the kind; `nil` when nothing was named.
    /// - Throws: `ValidationError` for an option that is missing, or belongs to another kind.
    func kind(_ target: RekeyOptions.Target?, standardFile: String) throws -> (any KeyProviderKind)? {
        let (required, optional) = target?.kind.rekeyOptions ?? ([], [])
        if let extra = given.subtracting(required).subtracting(optional).min() {
            let kind = KeyProviderKinds.all.first {
                $0.rekeyOptions.required.union($0.rekeyOptions.optional).contains(extra)
            }
            throw ValidationError("--\(extra) belongs to --keys \(kind?.name ?? "").")
        }
        if target?.kind.name == PKCS11Kind.name, !required.isSubset(of: given) {
            throw ValidationError("--keys pkcs11 needs --module and --token.")
        }
        do {
            return try target?.kind.init(self, keyFile: standardFile)
        } catch let mistake as RekeyOptions.Mistake {
            throw ValidationError(mistake.text)
        }
    }
}
