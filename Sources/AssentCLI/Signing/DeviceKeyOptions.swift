import ArgumentParser

/// The options of `assent device enroll` that say what holds the device's keys.
struct DeviceKeyOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "What holds the device's keys: \(KeyProviderKinds.names). Default: a key file, which is not protected.")
    var keys: RekeyOptions.Target?

    @Option(name: .long, help: "The path of the token's PKCS#11 module (with --keys pkcs11).", completion: .file())
    var module: String?

    @Option(name: .long, help: "The token's label (with --keys pkcs11).")
    var token: String?

    @Option(
        name: .long,
        help: "How to reach the TPM, as tpm2-tools take it (with --keys tpm). Default: \(TPMKind().tcti).")
    var tcti: String?

    @Option(
        name: .long,
        help: "The handle of a persistent storage key, such as 0x81000001, when the owner made one (with --keys tpm).")
    var tpmParent: String?

    @Flag(name: .long, help: "No PIN: everyone who may use this TPM and can read the files can sign (with --keys tpm).")
    var withoutPin = false

    func validate() throws {
        let options: [(name: String, isGiven: Bool, kind: String)] = [
            ("module", module != nil, PKCS11Kind.name), ("token", token != nil, PKCS11Kind.name),
            ("tcti", tcti != nil, TPMKind.name), ("tpm-parent", tpmParent != nil, TPMKind.name),
            ("without-pin", withoutPin, TPMKind.name),
        ]
        let chosen = keys?.kind.name
        for option in options where option.isGiven && option.kind != chosen {
            throw ValidationError("--\(option.name) belongs to --keys \(option.kind).")
        }
        if chosen == PKCS11Kind.name, module == nil || token == nil {
            throw ValidationError("--keys pkcs11 needs --module and --token.")
        }
        _ = try choice(standardFile: "")
    }

    /// What was chosen.
    ///
    /// - Parameter standardFile: the path of the key file of `--keys key-file`.
    /// - Returns: the kind; `nil` when nothing was chosen.
    /// - Throws: `ValidationError`.
    func choice(standardFile: String) throws -> (any KeyProviderKind)? {
        guard let kind = keys?.kind else { return nil }
        if kind.name == KeyFileKind.name { return KeyFileKind(path: standardFile) }
        var options = RekeyOptions()
        options.to = keys
        options.newKeyFile = nil
        options.module = module
        options.token = token
        options.tcti = tcti
        options.tpmParent = tpmParent
        options.withoutPin = withoutPin
        options.newPassphraseFile = nil
        options.newPassphraseDescriptor = nil
        do {
            return try kind.init(options)
        } catch let mistake as RekeyOptions.Mistake {
            throw ValidationError(mistake.text)
        }
    }
}
