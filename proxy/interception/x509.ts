// tsyringe, inside @peculiar/x509, wants this polyfill loaded ahead of it.
// oxlint-disable-next-line import/no-unassigned-import
import "reflect-metadata";

export * as x509 from "@peculiar/x509";
