/* A PKCS#11 module that passes everything on to SoftHSM, except for the faults that the file beside it (its own path and
   ".faults", one "name number" per line) asks for. Compiled by the tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <p11-kit/pkcs11.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CK_FUNCTION_LIST *real;
static CK_FUNCTION_LIST faulty;
static char path[4096];

static int fault(const char *name, unsigned long *value) {
    char line[128], found[64];
    unsigned long number;
    int there = 0;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %lu", found, &number) == 2 && strcmp(found, name) == 0) {
            *value = number;
            there = 1;
        }
    fclose(file);
    return there;
}

#define FAIL(name) do { unsigned long code; if (fault(name, &code)) return code; } while (0)

static CK_RV initialize(void *arguments) {
    FAIL("initialize");
    CK_RV result = real->C_Initialize(arguments);
    return result == CKR_CRYPTOKI_ALREADY_INITIALIZED ? CKR_OK : result;
}

/* SoftHSM has one state per process, which others use too. */
static CK_RV finalize(void *reserved) { return CKR_OK; }

static CK_RV information(CK_INFO *info) {
    unsigned long value;
    FAIL("information");
    CK_RV result = real->C_GetInfo(info);
    if (fault("version", &value)) info->cryptokiVersion.major = (unsigned char)value;
    return result;
}

static CK_RV slots(unsigned char present, CK_SLOT_ID *list, unsigned long *count) {
    unsigned long value;
    if (fault("slot-count", &value)) {
        *count = value;
        return CKR_OK;
    }
    return real->C_GetSlotList(present, list, count);
}

static CK_RV token(CK_SLOT_ID slot, CK_TOKEN_INFO *info) {
    unsigned long flags;
    FAIL("token");
    CK_RV result = real->C_GetTokenInfo(slot, info);
    if (fault("flags", &flags)) info->flags |= flags;
    return result;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *application, CK_NOTIFY notify, CK_SESSION_HANDLE *session) {
    if (flags & CKF_RW_SESSION) FAIL("open-for-writing");
    FAIL("open");
    return real->C_OpenSession(slot, flags, application, notify, session);
}

static CK_RV login(CK_SESSION_HANDLE session, CK_USER_TYPE user, unsigned char *pin, unsigned long length) {
    FAIL("login");
    return real->C_Login(session, user, pin, length);
}

static CK_RV generate(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_ATTRIBUTE *public_part, unsigned long public_count,
    CK_ATTRIBUTE *private_part, unsigned long private_count, CK_OBJECT_HANDLE *public_key, CK_OBJECT_HANDLE *private_key) {
    unsigned long value, i;
    FAIL("generate");
    if (fault("readable", &value))
        for (i = 0; i < private_count; i++) {
            if (private_part[i].type == CKA_SENSITIVE) *(unsigned char *)private_part[i].pValue = 0;
            if (private_part[i].type == CKA_EXTRACTABLE) *(unsigned char *)private_part[i].pValue = 1;
        }
    return real->C_GenerateKeyPair(
        session, mechanism, public_part, public_count, private_part, private_count, public_key, private_key);
}

static CK_RV sign(CK_SESSION_HANDLE session, unsigned char *data, unsigned long length, unsigned char *signature, unsigned long *size) {
    unsigned long value;
    if (fault("close-once", &value)) {
        unlink(path);
        real->C_CloseSession(session);
        return CKR_SESSION_HANDLE_INVALID;
    }
    FAIL("sign");
    CK_RV result = real->C_Sign(session, data, length, signature, size);
    if (fault("signature-length", &value)) *size = value;
    if (fault("signature-byte", &value)) signature[value] ^= 1;
    return result;
}

static CK_RV derive(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, CK_ATTRIBUTE *part,
    unsigned long count, CK_OBJECT_HANDLE *derived) {
    FAIL("derive");
    return real->C_DeriveKey(session, mechanism, key, part, count, derived);
}

static CK_RV attributes(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE object, CK_ATTRIBUTE *part, unsigned long count) {
    unsigned long value;
    FAIL("attributes");
    CK_RV result = real->C_GetAttributeValue(session, object, part, count);
    if (fault("attribute-length", &value)) part[0].ulValueLen = value;
    return result;
}

static CK_RV find(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *objects, unsigned long limit, unsigned long *count) {
    unsigned long value;
    CK_RV result = real->C_FindObjects(session, objects, limit, count);
    if (fault("object-count", &value)) *count = value;
    return result;
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **list) {
    Dl_info self;
    unsigned long value;
    CK_RV (*get)(CK_FUNCTION_LIST **);
    void *module;
    /* Not this function's name: p11-kit has one of the same. */
    if (!dladdr((void *)finalize, &self)) return CKR_GENERAL_ERROR;
    snprintf(path, sizeof path, "%s.faults", self.dli_fname);
    FAIL("load");
    module = dlopen(SOFTHSM, RTLD_NOW | RTLD_LOCAL);
    if (!module) return CKR_GENERAL_ERROR;
    get = (CK_RV (*)(CK_FUNCTION_LIST **))dlsym(module, "C_GetFunctionList");
    if (!get || get(&real) != CKR_OK) return CKR_GENERAL_ERROR;
    faulty = *real;
    faulty.C_GetInfo = information;
    faulty.C_Initialize = initialize;
    faulty.C_Finalize = finalize;
    faulty.C_GetSlotList = slots;
    faulty.C_GetTokenInfo = token;
    faulty.C_OpenSession = open_session;
    faulty.C_Login = login;
    faulty.C_GenerateKeyPair = generate;
    faulty.C_Sign = sign;
    faulty.C_DeriveKey = derive;
    faulty.C_GetAttributeValue = attributes;
    faulty.C_FindObjects = find;
    *list = &faulty;
    return CKR_OK;
}
